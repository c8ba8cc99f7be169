package main

import (
	"archive/zip"
	"bytes"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/internal/snippets"
)

const version = "v0.1.0"

// checking is for make release-check, which CI runs.
var checking = flag.Bool("release", false, "pack all modules, install them as a user and follow docs/start.md: takes minutes")

// published is a module proxy with what is in the files now.
func published(t *testing.T) (*release, string) {
	t.Helper()
	if !*checking {
		t.Skip("packs and compiles all modules: make release-check")
	}
	r, err := open(version, true)
	if err != nil {
		t.Fatal(err)
	}
	proxy := t.TempDir()
	if err := r.publishAll(proxy, io.Discard); err != nil {
		t.Fatal(err)
	}
	return r, proxy
}

func TestVersion(t *testing.T) {
	for _, bad := range []string{"", "0.1.0", "v0.1", "v1.0.0+dirty", "latest"} {
		if err := checkVersion(bad); err == nil || !strings.Contains(err.Error(), "--version is") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestModules: each module is whole, has nothing of another one, and depends on released
// versions only. Two releases of the same files have the same bytes.
func TestModules(t *testing.T) {
	r, proxy := published(t)
	_, again := published(t)
	if len(r.modules) < 6 {
		t.Fatalf("%d modules: %v", len(r.modules), r.modules)
	}
	for _, m := range r.modules {
		base := filepath.Join(filepath.FromSlash(m.path), "@v", version)
		for _, suffix := range []string{".info", ".mod", ".zip"} {
			a, err := os.ReadFile(filepath.Join(proxy, base+suffix))
			b, _ := os.ReadFile(filepath.Join(again, base+suffix))
			if err != nil || !bytes.Equal(a, b) {
				t.Errorf("%s%s differs from one release to the next: %v", m.path, suffix, err)
			}
		}
		files := unzipped(t, filepath.Join(proxy, base+".zip"), m.path+"@"+version+"/")
		mod := files["go.mod"]
		if strings.Contains(mod, "replace") || strings.Contains(mod, " v0.0.0\n") || files["LICENSE"] == "" {
			t.Errorf("%s has no licence, or a go.mod that is for the repository only:\n%s", m.path, mod)
		}
		for name := range files {
			if strings.HasSuffix(name, "/go.mod") && !strings.Contains(name, "testdata/") {
				t.Errorf("%s has the module %s in it", m.path, name)
			}
		}
	}
}

func unzipped(t *testing.T, name, prefix string) map[string]string {
	t.Helper()
	z, err := zip.OpenReader(name)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	all := make(map[string]string)
	for _, f := range z.File {
		within, ok := strings.CutPrefix(f.Name, prefix)
		if !ok {
			t.Errorf("%s has %s", name, f.Name)
		}
		text := new(bytes.Buffer)
		c, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := text.ReadFrom(c); err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
		all[within] = text.String()
	}
	return all
}

// A user has an empty directory and a module proxy.
type user struct {
	t   *testing.T
	dir string
	env []string
}

func newUser(t *testing.T, r *release, proxy string) *user {
	t.Helper()
	env, err := installEnv(proxy, t.TempDir(), r.prefix)
	if err != nil {
		t.Fatal(err)
	}
	// What comes from the module cache was checked when it got there. With the flags of this test the build cache has
	// what others compiled.
	return &user{t, t.TempDir(), append(env, "GOSUMDB=off", "GOFLAGS=-modcacherw -trimpath "+os.Getenv("GOFLAGS"))}
}

// runs a command in a directory of the user.
func (u *user) runs(dir, name string, args ...string) string {
	u.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = filepath.Join(u.dir, dir), u.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		u.t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func (u *user) writes(name, text string) {
	u.t.Helper()
	name = filepath.Join(u.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		u.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		u.t.Fatal(err)
	}
}

// documents returns the blocks of code of all documents.
func documents(t *testing.T) []snippets.Snippet {
	t.Helper()
	all, err := snippets.All(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// installs returns the commands in documents that get or install something.
func installs(t *testing.T) (all []string) {
	t.Helper()
	for _, s := range documents(t) {
		for _, command := range s.Commands() {
			if strings.HasPrefix(command, "go get ") || strings.HasPrefix(command, "go install ") {
				all = append(all, command)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestUser runs each command of a document that gets a module or installs the program, each in an empty directory, and
// builds the examples of the repository. The examples have the code of the documents (package examples/docs).
func TestUser(t *testing.T) {
	r, proxy := published(t)
	u := newUser(t, r, proxy)
	commands := installs(t)
	for i, m := range r.modules {
		command := "go get " + m.path
		if m.dir == "cmd/spillway" {
			command = "go install " + m.path + "@latest"
		}
		if !slices.Contains(commands, command) {
			t.Errorf("no document has the command %q", command)
		}
		dir, words := fmt.Sprint("own", i), strings.Fields(command)
		u.writes(dir+"/go.mod", "module example.org/own\n\ngo 1.26.0\n")
		u.runs(dir, words[0], words[1:]...)
		if words[1] == "get" {
			u.writes(dir+"/own.go", fmt.Sprintf("package own\n\nimport _ %q\n", m.path))
			u.runs(dir, "go", "build", "./...")
		}
	}
	if len(commands) != len(r.modules) {
		t.Errorf("%d modules, but documents have the commands %q", len(r.modules), commands)
	}
	for _, v := range u.env {
		if gopath, ok := strings.CutPrefix(v, "GOPATH="); ok {
			if got := u.runs("", filepath.Join(gopath, "bin", "spillway"), "--version"); !strings.HasPrefix(got, "spillway "+version+" ") {
				t.Errorf("the program says %q", got)
			}
		}
	}

	u.builds(r, "examples")
}

// builds compiles the programs of a module that is not released, as they are in a
// repository of the user.
func (u *user) builds(r *release, dir string) {
	u.t.Helper()
	mod, err := r.mod(dir)
	if err != nil {
		u.t.Fatal(err)
	}
	u.writes(dir+"/go.mod", string(mod))
	sources := make(map[string]bool)
	for _, name := range r.files {
		within, ok := r.within(dir, name)
		if !ok || filepath.Base(name) == "go.mod" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(r.root, filepath.FromSlash(name)))
		if err != nil {
			u.t.Fatal(err)
		}
		u.writes(dir+"/"+within, string(text))
		sources[filepath.Ext(within)] = true
	}
	if !sources[".go"] {
		u.t.Fatalf("no program in %s: %v", dir, slices.Collect(maps.Keys(sources)))
	}
	u.runs(dir, "go", "build", "-mod=mod", "-trimpath", "-o", os.DevNull, "./...")
}
