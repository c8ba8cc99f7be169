package main

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// surface returns a line for each exported name of the packages below a directory, sorted.
func surface(root string) (lines []string, err error) {
	err = filepath.WalkDir(root, func(dir string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if dir != root && hidden(entry.Name()) {
			return filepath.SkipDir
		}
		of, err := exports(dir, path.Join("spillway", filepath.ToSlash(dir)))
		lines = append(lines, of...)
		return err
	})
	slices.Sort(lines)
	return slices.Compact(lines), err // a name may have a file for each system
}

// hidden reports whether users import nothing from a directory of this name.
func hidden(name string) bool {
	return name == "internal" || name == "examples" || name == "testdata" || name == "dist" || name[0] == '.' || name[0] == '_'
}

// exports returns the lines of one package: none if it is a program.
func exports(dir, name string) (lines []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(token.NewFileSet(), entry.Name(), text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		if file.Name.Name == "main" {
			return nil, nil
		}
		ast.FileExports(file)
		for _, d := range file.Decls {
			for _, said := range declared(d) {
				lines = append(lines, "pkg "+name+", "+said)
			}
		}
	}
	return lines, nil
}

// declared returns a line for each name that a declaration exports.
func declared(d ast.Decl) (lines []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return []string{"func " + d.Name.Name + text(d.Type)}
		}
		if receiver := text(d.Recv.List[0].Type); ast.IsExported(strings.TrimLeft(receiver, "*")) {
			return []string{"method (" + receiver + ") " + d.Name.Name + text(d.Type)}
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.ValueSpec:
				for _, name := range s.Names {
					lines = append(lines, strings.TrimSpace(d.Tok.String()+" "+name.Name+" "+text(s.Type)))
				}
			case *ast.TypeSpec:
				lines = append(lines, typed(s)...)
			}
		}
	}
	return lines
}

// typed returns the line of a type, and one for each of its exported fields or methods.
func typed(s *ast.TypeSpec) (lines []string) {
	head := "type " + s.Name.Name
	var kind string
	var members *ast.FieldList
	switch t := s.Type.(type) {
	case *ast.StructType:
		kind, members = " struct", t.Fields
	case *ast.InterfaceType:
		kind, members = " interface", t.Methods
	default:
		if s.Assign.IsValid() {
			return []string{head + " = " + text(s.Type)}
		}
		return []string{head + " " + text(s.Type)}
	}
	lines = []string{head + kind}
	for _, m := range members.List {
		if len(m.Names) == 0 {
			lines = append(lines, head+kind+", embedded "+text(m.Type))
		}
		for _, name := range m.Names {
			lines = append(lines, head+kind+", "+name.Name+" "+text(m.Type))
		}
	}
	return lines
}

// text returns an expression on one line, without the word func of the type of a function.
func text(e ast.Expr) string {
	if e == nil {
		return ""
	}
	var b bytes.Buffer
	if err := format.Node(&b, token.NewFileSet(), e); err != nil {
		return err.Error()
	}
	return strings.TrimPrefix(strings.Join(strings.Fields(b.String()), " "), "func")
}
