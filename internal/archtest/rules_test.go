package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

const module = "github.com/seed90641741/spillway"

// A checker applies the rules to a tree. Each complaint says what to do.
type checker struct {
	*tree

	table      map[string]row
	complaints []string
}

func check(t *tree, table map[string]row) []string {
	c := &checker{tree: t, table: table}
	c.checkModules()
	c.checkRows()
	for dir, files := range t.packages {
		key := c.rowOf(dir)
		self, ok := table[key]
		if !ok {
			c.complainf("%s has no row: give it a level in internal/archtest/table_test.go", key)
			continue
		}
		for _, f := range files {
			c.checkFile(unit{f, self, key})
		}
	}
	slices.Sort(c.complaints)
	return slices.Compact(c.complaints)
}

// rowOf is that of the tree, unless a row above dir is of all that is below it.
func (c *checker) rowOf(dir string) string {
	key := c.tree.rowOf(dir)
	for up := key; up != "."; up = path.Dir(up) {
		if c.table[up].tree {
			return up
		}
	}
	return key
}

func (c *checker) complainf(format string, args ...any) {
	c.complaints = append(c.complaints, fmt.Sprintf(format, args...))
}

// checkRows expects a package for each row.
func (c *checker) checkRows() {
	found := map[string]bool{}
	for dir := range c.packages {
		found[c.rowOf(dir)] = true
	}
	for key := range c.table {
		if !found[key] {
			c.complainf("%s has a row but no package: take it out of internal/archtest/table_test.go", key)
		}
	}
}

// checkModules requires one version of Go, a root that requires nothing, all modules in go.work
// under the path of their directory, and no modules for tests where the program is shipped from.
func (c *checker) checkModules() {
	root := strings.Fields(c.modules["."])
	if len(root) != 4 || root[0] != "module" || root[2] != "go" {
		c.complainf("go.mod holds more than its module and go lines: the root module requires nothing, and needs no other directive")
		return
	}
	if !hasLine(c.work, "go", root[3]) {
		c.complainf("go.work names another version of Go than go.mod: make it go %s", root[3])
	}
	for dir, mod := range c.modules {
		file, as := path.Join(dir, "go.mod"), path.Join(module, dir)
		if !hasLine(mod, "module", as) {
			c.complainf("%s: the module must be called %s, after its directory", file, as)
		}
		if !hasLine(mod, "go", root[3]) {
			c.complainf("%s names another version of Go: make it go %s, as in the root module", file, root[3])
		}
		if strings.Contains(mod, "\ntoolchain ") {
			c.complainf("%s has a toolchain line: take it out, users choose their own", file)
		}
		if dir != "." && !hasLine(c.work, "./"+dir) {
			c.complainf("%s is not in the workspace: run go work use ./%s", file, dir)
		}
		if dir == "cmd/spillway" {
			c.checkShipped(dir, mod)
		}
	}
}

// checkShipped requires that the code of a module imports each module of ours that its go.mod
// requires directly: one that only tests import would be in what users install.
func (c *checker) checkShipped(dir, mod string) {
	for line := range strings.Lines(mod) {
		required := strings.Fields(strings.TrimPrefix(line, "require "))
		if len(required) != 2 || !strings.HasPrefix(required[0], module+"/") {
			continue
		}
		if !c.imports(dir, required[0]) {
			c.complainf("%s requires %s for tests only: move them to a module of tests, such as cmd/spillway/drivers", path.Join(dir, "go.mod"), required[0])
		}
	}
}

// imports reports whether code of the module in dir, other than tests, imports a package of the
// module mod.
func (c *checker) imports(dir, mod string) bool {
	for at, files := range c.packages {
		if c.moduleOf(at) == dir && slices.ContainsFunc(files, func(s source) bool { return c.uses(s, mod) }) {
			return true
		}
	}
	return false
}

// uses reports whether a file is no test and imports a package of the module mod.
func (c *checker) uses(s source, mod string) bool {
	test, _ := s.test()
	return !test && slices.ContainsFunc(s.Imports, func(spec *ast.ImportSpec) bool {
		imported, ours := strings.CutPrefix(importPath(spec), module+"/")
		return ours && path.Join(module, c.moduleOf(imported)) == mod
	})
}

// hasLine reports whether text has a line of just these words.
func hasLine(text string, words ...string) bool {
	for line := range strings.Lines(text) {
		if slices.Equal(strings.Fields(line), words) {
			return true
		}
	}
	return false
}

// A unit is a file and the row, of the name key, that it belongs to.
type unit struct {
	source
	row

	key string
}

func (c *checker) checkFile(f unit) {
	for _, spec := range f.Imports {
		c.checkImport(f, importPath(spec))
	}
	c.checkWords(f)
	test, _ := f.test()
	if !test {
		c.checkWidth(f)
	}
	if !test && c.moduleOf(path.Dir(f.name)) == "." {
		c.checkLengths(f)
	}
	switch {
	case test:
		c.checkSleep(f)
	case f.name == f.waits:
		if len(impure(f.source)) == 0 {
			c.complainf("%s waits for nothing: take it out of the row of %s in internal/archtest/table_test.go", f.name, f.key)
		}
	case f.level <= policies:
		for _, does := range impure(f.source) {
			c.complainf("%s %s: words and policies are told the time, and leave waiting and goroutines to the shell around them", f.name, does)
		}
	}
}

// The longest function and the longest file of the root module, in lines. What is longer has
// more than one thing to say.
const (
	mostOfFunc = 40
	mostOfFile = 350
)

func (c *checker) checkLengths(f unit) {
	if n := f.lines(f.File); n > mostOfFile {
		c.complainf("%s has %d lines, more than %d: split it by what it is about", f.name, n, mostOfFile)
	}
	for _, decl := range f.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && f.lines(fn) > mostOfFunc {
			c.complainf("%s: %s has %d lines, more than %d: give a part of it a name", f.name, fn.Name.Name, f.lines(fn), mostOfFunc)
		}
	}
}

// mostOfLine is the longest line in characters, as in .golangci.yml.
const mostOfLine = 160

// tagged is a line with the tag of a field, which cannot be broken.
var tagged = regexp.MustCompile("`[a-z]+:\"")

func (c *checker) checkWidth(f unit) {
	number := 0
	for line := range strings.Lines(f.text) {
		number++
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > mostOfLine && !tagged.MatchString(line) {
			c.complainf("%s:%d has %d characters, more than %d: break the line", f.name, number, n, mostOfLine)
		}
	}
}

func (c *checker) checkImport(f unit, imp string) {
	first, _, _ := strings.Cut(imp, "/")
	dir, ours := strings.CutPrefix(imp+"/", module+"/")
	switch {
	case ours:
		c.checkOurs(f, c.rowOf(path.Clean(dir)))
	case strings.Contains(first, "."):
		c.checkForeign(f, imp)
	default:
		c.checkStandard(f, imp)
	}
}

// checkOurs requires the row named key to be one that f may import.
func (c *checker) checkOurs(f unit, key string) {
	test, apart := f.test()
	to, ok := c.table[key]
	switch {
	case !ok, key == f.key, to.level < f.level: // what is in no row is complained of elsewhere
	case test && to.kit:
	case apart && to.level == f.level:
	default:
		c.complainf("%s (%v) imports %s (%v): imports point down only; declare the interface that is needed here, or move what joins the two a level up",
			f.name, f.level, key, to.level)
	}
}

// checkForeign requires imp, which is of another project, to be allowed to f.
func (c *checker) checkForeign(f unit, imp string) {
	isHost := func(host string) bool { return imp == host || strings.HasPrefix(imp, host+"/") }
	switch {
	case c.moduleOf(f.key) == ".":
		c.complainf("%s imports %s: the root module uses the standard library only; an adapter is a module of its own", f.name, imp)
	case f.level != programs && !slices.ContainsFunc(f.hosts, isHost):
		c.complainf("%s imports %s: an adapter uses the library that it is for and no other; add it to the hosts of %s if it is that one", f.name, imp, f.key)
	}
}

// checkStandard requires imp, of the standard library, to be no way to log.
func (c *checker) checkStandard(f unit, imp string) {
	test, _ := f.test()
	if !test && f.level <= stacks && slices.Contains([]string{"log", "log/slog", "expvar"}, imp) {
		c.complainf("%s imports %s: nothing below the edges logs; report an Event, or let Stats be pulled", f.name, imp)
	}
}
