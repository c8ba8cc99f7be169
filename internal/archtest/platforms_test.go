package archtest

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/internal/thorough"
)

// A listed package is one of `go list`.
type listed struct {
	ImportPath, Dir string
	Standard        bool
	GoFiles         []string
	ImportMap       map[string]string
}

// The packages of the root module and their tests are correct where an int has 32 bits, and for other systems. Only types are
// checked: to compile the standard library for each platform would take minutes.
func TestPlatforms(t *testing.T) {
	platforms := []string{"linux/386", "darwin/arm64", "windows/amd64"}
	for _, platform := range platforms[:thorough.Seeds(1, 3)] {
		t.Run(platform, func(t *testing.T) {
			t.Parallel()
			goos, goarch, _ := strings.Cut(platform, "/")
			list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-test", "-json=ImportPath,Dir,Standard,GoFiles,ImportMap", "./...")
			list.Dir = "../.."
			list.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
			out, err := list.Output()
			if err != nil {
				t.Fatal(err)
			}
			c := typeChecker{types: map[string]*types.Package{"unsafe": types.Unsafe}, sizes: types.SizesFor("gc", goarch), files: token.NewFileSet()}
			for d := json.NewDecoder(strings.NewReader(string(out))); ; {
				var p listed
				if err := d.Decode(&p); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				if p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test") {
					continue
				}
				for _, err := range c.check(&p) {
					t.Error(err)
				}
			}
		})
	}
}

// A typeChecker checks the types of packages, each after what it imports.
type typeChecker struct {
	types map[string]*types.Package
	sizes types.Sizes
	files *token.FileSet
}

// check returns the errors of a package, without errors of the standard library, whose functions are not looked into.
func (c *typeChecker) check(p *listed) (wrong []error) {
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(c.files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return []error{err}
		}
		files = append(files, f)
	}
	config := types.Config{
		Sizes: c.sizes, IgnoreFuncBodies: p.Standard, Importer: importing{c, p.ImportMap},
		Error: func(err error) {
			if !p.Standard {
				wrong = append(wrong, err)
			}
		},
	}
	path, _, _ := strings.Cut(p.ImportPath, " ")
	c.types[p.ImportPath], _ = config.Check(path, c.files, files, nil) // Error gets all errors
	return wrong
}

// importing finds what a package imports.
type importing struct {
	*typeChecker

	names map[string]string
}

// Import implements [types.Importer].
func (i importing) Import(path string) (*types.Package, error) {
	if name := i.names[path]; name != "" {
		path = name
	}
	if p := i.types[path]; p != nil {
		return p, nil
	}
	return nil, errors.New("not listed: " + path)
}
