package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// A tree is what there is to check: the source of all modules.
type tree struct {
	work     string              // text of go.work
	modules  map[string]string   // text of go.mod, by directory
	packages map[string][]source // by directory
}

// A source is one file of Go.
type source struct {
	*ast.File

	name  string // from the root of the tree
	text  string
	lines func(ast.Node) int
}

// test reports whether s is a test, and apart whether it is one in a package of
// its own.
func (s source) test() (test, apart bool) {
	test = strings.HasSuffix(s.name, "_test.go")
	return test, test && strings.HasSuffix(s.Name.Name, "_test")
}

// importPath is the path that spec imports.
func importPath(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return spec.Path.Value // does not parse, hence does not happen
	}
	return p
}

// load reads all modules below the root of fsys.
func load(fsys fs.FS) (*tree, error) {
	t := &tree{modules: map[string]string{}, packages: map[string][]source{}}
	return t, walk(fsys, func(name string) error { return t.read(fsys, name) })
}

// walk calls visit for each file of the project.
func walk(fsys fs.FS, visit func(name string) error) error {
	return fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && skipped(d.Name()):
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		return visit(name)
	})
}

// skipped reports whether the go command, or this project, sees no source in
// directories of that name.
func skipped(dir string) bool {
	return dir != "." && strings.ContainsAny(dir[:1], "._") ||
		dir == "testdata" || dir == "node_modules" || dir == "dist"
}

// read adds the file name to t if it is of a kind that matters here.
func (t *tree) read(fsys fs.FS, name string) error {
	base := path.Base(name)
	if name != "go.work" && base != "go.mod" && path.Ext(base) != ".go" {
		return nil
	}
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	dir := path.Dir(name)
	switch base {
	case "go.work":
		t.work = string(text)
	case "go.mod":
		t.modules[dir] = string(text)
	default:
		var f *ast.File
		files := token.NewFileSet()
		f, err = parser.ParseFile(files, name, text, parser.SkipObjectResolution)
		lines := func(n ast.Node) int { return files.Position(n.End()).Line - files.Position(n.Pos()).Line + 1 }
		t.packages[dir] = append(t.packages[dir], source{f, name, string(text), lines})
	}
	return err
}

// moduleOf returns the directory of the module that dir belongs to.
func (t *tree) moduleOf(dir string) string {
	for ; dir != "."; dir = path.Dir(dir) {
		if _, ok := t.modules[dir]; ok {
			return dir
		}
	}
	return "."
}

// rowOf returns the key of the row that dir belongs to: its own in the root
// module, that of the module elsewhere.
func (t *tree) rowOf(dir string) string {
	if m := t.moduleOf(dir); m != "." {
		return m
	}
	return dir
}
