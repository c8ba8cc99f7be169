package policyconf_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/scenario"
	"github.com/seed90641741/spillway/cmd/spillway/internal/policyconf"
)

// root is the directory of the library.
const root = "../../../.."

// notPolicies are packages of the library that have a Config and are no policies, with the reason.
var notPolicies = map[string]string{
	"connlimit":  "a listener: its rate has the settings of ratelimit.Config, and max_connections of listeners is its MaxOpen",
	"egress":     "a stack: it has the settings of its policies",
	"ingress":    "likewise",
	"spilladmin": "a page of a program: code configures it",
	"spillhttp":  "an adapter: code configures it",
	"spillslog":  "likewise",
	"spillsql":   "likewise",
	"sim":        "the simulator, whose Config is the system that it simulates",
}

// declared returns the exported struct types of the library whose names end with Config, such as
// throttle.Config, by package.
func declared(t *testing.T) map[string][]string {
	t.Helper()
	all := make(map[string][]string)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			_, noModule := os.Stat(filepath.Join(path, "go.mod"))
			if path != root && (noModule == nil || entry.Name() == "internal" || strings.HasPrefix(entry.Name(), ".")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if _, isStruct := spec.Type.(*ast.StructType); isStruct && spec.Name.IsExported() && strings.HasSuffix(spec.Name.Name, "Config") {
				all[file.Name.Name] = append(all[file.Name.Name], file.Name.Name+"."+spec.Name.Name)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestConfigs: configs lists each Config of each policy of the library, and each struct in a list
// or a map of a Config. So a new policy needs settings in files, or a reason in a list.
func TestConfigs(t *testing.T) {
	listed := make(map[string]bool)
	for _, c := range configs {
		listed[reflect.TypeOf(c).String()] = true
	}
	all := declared(t)
	for name := range notPolicies {
		if len(all[name]) == 0 {
			t.Errorf("notPolicies has %s, which has no Config", name)
		}
		delete(all, name)
	}
	if len(all) < 12 {
		t.Fatalf("only these packages have a Config: %v", all)
	}
	for _, names := range all {
		for _, name := range names {
			if !listed[name] {
				t.Errorf("configs lacks %s", name)
			}
		}
	}
	for _, c := range configs {
		for _, field := range fields(reflect.TypeOf(c).String(), reflect.TypeOf(c)) {
			of := valueOf(reflect.ValueOf(c), field).Type()
			if k := of.Kind(); k != reflect.Map && k != reflect.Slice && k != reflect.Pointer || inCode[field] != "" || proxy.without[field] != "" {
				continue
			}
			if e := of.Elem(); e.Kind() == reflect.Struct && strings.Contains(e.PkgPath(), "/spillway/") && !listed[e.String()] {
				t.Errorf("configs lacks %s, the elements of %s", e, field)
			}
		}
	}
}

// TestSections: a surface lists each type of section of its files, at the right place.
func TestSections(t *testing.T) {
	for s, file := range map[*surface]reflect.Type{&proxy: reflect.TypeFor[config.Config](), &scenarios: reflect.TypeFor[scenario.File]()} {
		places := make(map[string]reflect.Type)
		sectionsOf("", file, places)
		known := make(map[reflect.Type]bool)
		for place, section := range s.sections {
			known[reflect.TypeOf(section)] = true
			if got := places[strings.ReplaceAll(strings.ReplaceAll(place, ".acme", ".*"), ".shared", ".*")]; got != reflect.TypeOf(section) {
				t.Errorf("%s of %s is %v, and %T in the list", place, s.name, got, section)
			}
		}
		for place, section := range places {
			if !known[section] {
				t.Errorf("the sections of %s lack %s, %v", s.name, place, section)
			}
		}
	}
}

// sectionsOf adds the structs with settings of policies in a type, by their places in a file.
func sectionsOf(at string, in reflect.Type, to map[string]reflect.Type) {
	switch in.Kind() {
	case reflect.Pointer:
		sectionsOf(at, in.Elem(), to)
	case reflect.Slice:
		sectionsOf(at+".0", in.Elem(), to)
	case reflect.Map:
		sectionsOf(at+".*", in.Elem(), to)
	case reflect.Struct:
		if isSection(in) {
			to[strings.TrimPrefix(at, ".")] = in
		}
		for f := range in.Fields() {
			if name := f.Tag.Get("yaml"); name != "" && name != "-" {
				sectionsOf(at+"."+name, f.Type, to)
			}
		}
	default:
	}
}

// isSection reports whether a struct is a section: fields of it set fields of policies.
func isSection(section reflect.Type) bool {
	for f := range section.Fields() {
		if f.Tag.Get("sets") != "" {
			return section != reflect.TypeFor[policyconf.Load]() && section != reflect.TypeFor[policyconf.LoadTargets]()
		}
	}
	return false
}
