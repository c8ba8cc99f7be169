package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

//go:embed selected.txt
var selected string

// listed is what go list says of a package.
type listed struct {
	Dir, ImportPath, Name, Export string
	GoFiles                       []string
	DepOnly                       bool
}

// build compiles the tests of the package in dir with all its mutants, into work.
func build(dir, work string) (pkg *listed, binary string, mutants []*mutant, err error) {
	pkg, exports, err := list(dir)
	if err != nil {
		return nil, "", nil, err
	}
	m, files, err := check(pkg, exports)
	if err != nil {
		return nil, "", nil, err
	}
	overlay := map[string]string{}
	write := func(name string, source []byte) error {
		path := filepath.Join(work, name)
		overlay[filepath.Join(pkg.Dir, name)] = path
		return os.WriteFile(path, source, 0o600)
	}
	for i, name := range pkg.GoFiles {
		source, err := os.ReadFile(filepath.Join(pkg.Dir, name))
		if err != nil {
			return nil, "", nil, err
		}
		if err := write(name, m.file(files[i], source)); err != nil {
			return nil, "", nil, err
		}
	}
	support := strings.NewReplacer("PACKAGE", pkg.Name, "COUNT", strconv.Itoa(len(m.mutants))).Replace(selected)
	if err := write("mutant_selected.go", []byte(support)); err != nil {
		return nil, "", nil, err
	}
	binary = filepath.Join(work, "tests")
	return pkg, binary, m.mutants, compile(pkg, work, binary, overlay)
}

func compile(pkg *listed, work, binary string, overlay map[string]string) error {
	text, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return err
	}
	file := filepath.Join(work, "overlay.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	cmd := exec.Command("go", "test", "-c", "-vet=off", "-overlay", file, "-o", binary, pkg.ImportPath)
	cmd.Dir = pkg.Dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compile the mutants: %w\n%s", err, out)
	}
	return nil
}

// list returns the package in dir, and the files with the types of its dependencies.
func list(dir string) (*listed, map[string]string, error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=Dir,ImportPath,Name,Export,GoFiles,DepOnly", ".")
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, nil, err
	}
	var found *listed
	exports := map[string]string{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		pkg := &listed{}
		if err := dec.Decode(pkg); err != nil { //nolint:musttag // go list names fields as Go does
			return nil, nil, err
		}
		exports[pkg.ImportPath] = pkg.Export
		if !pkg.DepOnly {
			found = pkg
		}
	}
	return found, exports, nil
}

// check parses the package and finds out the types of its expressions.
func check(pkg *listed, exports map[string]string) (*mutator, []*ast.File, error) {
	m := &mutator{fset: token.NewFileSet(), info: &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{},
		Uses:  map[*ast.Ident]types.Object{},
		Defs:  map[*ast.Ident]types.Object{},
	}}
	files := make([]*ast.File, 0, len(pkg.GoFiles))
	for _, name := range pkg.GoFiles {
		file, err := parser.ParseFile(m.fset, filepath.Join(pkg.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, nil, err
		}
		files = append(files, file)
	}
	open := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	config := types.Config{Importer: importer.ForCompiler(m.fset, "gc", open)}
	var err error
	m.pkg, err = config.Check(pkg.ImportPath, m.fset, files, m.info)
	return m, files, err
}
