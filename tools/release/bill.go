package main

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// billSuffix follows the name of the program in the name of its bill of materials.
const billSuffix = ".cdx.json"

// writeBill writes the bill of materials of a program to a file in the same directory, in
// the JSON of CycloneDX: the modules that the program itself says it was built from. It has
// the time of the commit and no serial number, so that the same commit gives the same bytes.
func (r *release) writeBill(name string) error {
	info, err := buildinfo.ReadFile(name)
	if err != nil {
		return err
	}
	bill := cdx.NewBOM()
	main := component(cdx.ComponentTypeApplication, info.Main.Path, info.Main.Version)
	bill.Metadata = &cdx.Metadata{Timestamp: r.time.UTC().Format(time.RFC3339), Component: &main}
	parts := []cdx.Component{component(cdx.ComponentTypeLibrary, "std", info.GoVersion)}
	var refs []string
	for _, d := range info.Deps {
		parts = append(parts, component(cdx.ComponentTypeLibrary, d.Path, d.Version))
	}
	for _, p := range parts {
		refs = append(refs, p.BOMRef)
	}
	bill.Components = &parts
	bill.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &refs}}
	var text bytes.Buffer
	if err := cdx.NewBOMEncoder(&text, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bill); err != nil {
		return err
	}
	return os.WriteFile(name+billSuffix, text.Bytes(), 0o644)
}

func component(kind cdx.ComponentType, path, version string) cdx.Component {
	url := "pkg:golang/" + path + "@" + version
	return cdx.Component{Type: kind, BOMRef: url, Name: path, Version: version, PackageURL: url}
}
