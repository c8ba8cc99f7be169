package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	module  = "github.com/seed90641741/spillway"
	command = module + "/benchmarks/concurrency"
)

// ablated are the packages whose constants -ablate changes, with the files that have
// nothing to do with the limit.
var ablated = map[string][]string{
	"concurrency": nil,
	"shed":        {"accept.go", "degradation.go", "reason.go", "thresholds.go"},
}

// ablated returns the packages whose constants matter for the scenarios.
func (o options) ablated() map[string][]string {
	if o.processors {
		return map[string][]string{"shed": ablated["shed"]}
	}
	return ablated
}

// An ablation is a constant with another value.
type ablation struct {
	path       string
	from, to   int // the value in the source
	constant   string
	value, new string
}

func (a *ablation) String() string { return fmt.Sprintf("%s %s → %s", a.name(), a.value, a.new) }

// name is the package with the name of the constant.
func (a *ablation) name() string { return filepath.Base(filepath.Dir(a.path)) + "." + a.constant }

// overlay writes the changed file, and the file for the flag -overlay of go build.
func (a *ablation) overlay(dir string) (string, error) {
	b, err := os.ReadFile(a.path)
	if err != nil {
		return "", err
	}
	changed, overlay := filepath.Join(dir, filepath.Base(a.path)), filepath.Join(dir, "overlay.json")
	if err = writeFile(changed, slices.Concat(b[:a.from], []byte(a.new), b[a.to:])); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{a.path: changed}})
	if err != nil {
		return "", err
	}
	return overlay, writeFile(overlay, list)
}

// ablations returns half and double of each numeric constant of some packages.
func ablations(packages map[string][]string) (list []*ablation, err error) {
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", module+"/"+name).Output() //nolint:gosec // of this program
		if err != nil {
			return nil, err
		}
		files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "*.go"))
		if err != nil {
			return nil, err
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") || slices.Contains(packages[name], filepath.Base(path)) {
				continue
			}
			more, err := constantsOf(path)
			if err != nil {
				return nil, err
			}
			list = append(list, more...)
		}
	}
	return list, nil
}

// constantsOf returns half and double of the numeric constants of a file.
func constantsOf(path string) (list []*ablation, err error) {
	src, err := os.ReadFile(path) //nolint:gosec // of this module
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, src, 0)
	if err != nil {
		return nil, err
	}
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, spec := range g.Specs {
			v, _ := spec.(*ast.ValueSpec)
			for i, value := range v.Values {
				from, to := set.Position(value.Pos()).Offset, set.Position(value.End()).Offset
				for _, other := range variants(string(src[from:to]), value) {
					list = append(list, &ablation{path, from, to, v.Names[i].Name, string(src[from:to]), other})
				}
			}
		}
	}
	return list, nil
}

// variants returns a value at half and at double, none if it is not one of the rule's
// numbers. Of a share above one half it is the rest that changes.
func variants(source string, value ast.Expr) []string {
	switch v := value.(type) {
	case *ast.BasicLit:
		x, err := strconv.ParseFloat(v.Value, 64)
		switch {
		case err != nil:
			return nil
		case x > 0.5 && x < 1:
			return []string{number(1 - (1-x)/2), number(max(0, 1-(1-x)*2))}
		case v.Kind == token.INT:
			return []string{number(max(1, float64(int(x/2)))), number(2 * x)}
		}
		return []string{float(x / 2), float(2 * x)}
	case *ast.BinaryExpr, *ast.SelectorExpr:
		if strings.Contains(source, "time.") || source[0] <= '9' { // others follow from constants of their own
			return []string{"(" + source + ") / 2", "(" + source + ") * 2"}
		}
	}
	return nil
}

// float writes a number that is a float64 where the type of a constant follows from its value.
func float(x float64) string {
	text := number(x)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return text
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }
