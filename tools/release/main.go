// Command release makes a release of all modules of this repository that users import or
// install: zip files in the layout of a GOPROXY, which any file server can serve, and the
// program for each platform with checksums and a bill of materials.
//
//	release --version v0.1.0 --out dist/release/v0.1.0
//
// The same commit gives the same bytes. Requirements of one module on another get the
// version of the release, and replace directives between them are left out.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/semver"
)

func main() {
	version := flag.String("version", "", "version of all modules, such as v0.1.0")
	out := flag.String("out", "dist/release", "directory that gets the files")
	binaries := flag.Bool("binaries", true, "build the program for each platform")
	verify := flag.Bool("verify", false, "build each program a second time, with an empty build cache, and compare")
	platforms := flag.String("platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64", "platforms of the program")
	dirty := flag.Bool("dirty", false, "release what is in the files, though it is not committed")
	flag.Parse()
	var programs []string
	if *binaries {
		programs = strings.Split(*platforms, ",")
	}
	if err := run(*version, *out, programs, *verify, *dirty); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// run makes a release in the directory out, with programs for the given platforms.
func run(version, out string, platforms []string, verify, dirty bool) error {
	if !semver.IsValid(version) || semver.Canonical(version) != version {
		return fmt.Errorf("--version is %q, must be a semantic version such as v0.1.0", version)
	}
	out, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	r, err := open(version, dirty)
	if err != nil {
		return err
	}
	proxy := filepath.Join(out, "proxy")
	for _, m := range r.modules {
		if err := r.publish(m, proxy); err != nil {
			return fmt.Errorf("%s: %w", m.path, err)
		}
		fmt.Fprintf(os.Stdout, "%s@%s\n", m.path, version)
	}
	if len(platforms) == 0 {
		return nil
	}
	return r.build(proxy, filepath.Join(out, "bin"), platforms, verify)
}
