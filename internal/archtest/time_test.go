package archtest

import (
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
)

// clock is what reads the clock or waits for it.
var clock = []string{
	"time.Now", "time.Since", "time.Until", "time.Sleep", "time.After", "time.AfterFunc",
	"time.Tick", "time.NewTicker", "time.NewTimer", "context.WithTimeout", "context.WithDeadline",
}

// impure returns what f does that words and policies must not.
func impure(f source) (does []string) {
	for n := range ast.Preorder(f.File) {
		if _, ok := n.(*ast.GoStmt); ok {
			does = append(does, "starts a goroutine")
		}
		if name := qualified(f, n); slices.Contains(clock, name) {
			does = append(does, "uses "+name)
		}
	}
	return does
}

// checkSleep requires tests that sleep to enter a synctest bubble, themselves or by
// way of a helper, and helpers that sleep to be in a package whose tests do.
func (c *checker) checkSleep(f unit) {
	sleep := map[string]bool{"time.Sleep": true}
	for _, fn := range functions(f.source) {
		if !calls(f.source, fn, sleep) {
			continue
		}
		bubble := c.bubble(path.Dir(f.name))
		if len(bubble) == 1 || runByGo(fn) && !calls(f.source, fn, bubble) {
			c.complainf("%s: %s sleeps in real time: run it in a synctest bubble", f.name, fn.Name.Name)
		}
	}
}

// bubble returns the names of synctest.Test and of all functions in dir that
// call it.
func (c *checker) bubble(dir string) map[string]bool {
	test := map[string]bool{"synctest.Test": true}
	names := maps.Clone(test)
	for _, s := range c.packages[dir] {
		for _, fn := range functions(s) {
			if calls(s, fn, test) {
				names[fn.Name.Name] = true
			}
		}
	}
	return names
}

// functions returns the functions and methods that s declares.
func functions(s source) (all []*ast.FuncDecl) {
	for _, decl := range s.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok {
			all = append(all, fn)
		}
	}
	return all
}

// calls reports whether fn, of s, calls one of names.
func calls(s source, fn *ast.FuncDecl, names map[string]bool) bool {
	for n := range ast.Preorder(fn) {
		if call, ok := n.(*ast.CallExpr); ok {
			id, _ := call.Fun.(*ast.Ident)
			if names[qualified(s, call.Fun)] || id != nil && names[id.Name] {
				return true
			}
		}
	}
	return false
}

// runByGo reports whether `go test` calls fn by its name.
func runByGo(fn *ast.FuncDecl) bool {
	for _, prefix := range []string{"Test", "Benchmark", "Fuzz", "Example"} {
		if strings.HasPrefix(fn.Name.Name, prefix) {
			return fn.Recv == nil
		}
	}
	return false
}

// qualified returns n as package.Name, with the package by the last element of
// its path, or "" if n is no such thing.
func qualified(f source, n ast.Node) string {
	sel, ok := n.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	x, ok := sel.X.(*ast.Ident)
	if !ok {
		return ""
	}
	for _, spec := range f.Imports {
		name := path.Base(importPath(spec))
		if x.Name == name && spec.Name == nil || spec.Name != nil && x.Name == spec.Name.Name {
			return name + "." + sel.Sel.Name
		}
	}
	return ""
}
