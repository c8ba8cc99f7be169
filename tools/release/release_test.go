package main

import (
	"archive/zip"
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const version = "v0.1.0"

// published is a module proxy with what is in the files now.
func published(t *testing.T) (*release, string) {
	t.Helper()
	r, err := open(version, true)
	if err != nil {
		t.Fatal(err)
	}
	proxy := t.TempDir()
	for _, m := range r.modules {
		if err := r.publish(m, proxy); err != nil {
			t.Fatalf("%s: %v", m.path, err)
		}
	}
	return r, proxy
}

func TestVersion(t *testing.T) {
	for _, bad := range []string{"", "0.1.0", "v0.1", "v1.0.0+dirty", "latest"} {
		if err := run(bad, t.TempDir(), false, false, true); err == nil || !strings.Contains(err.Error(), "--version is") {
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
	if testing.Short() {
		t.Skip("compiles all modules")
	}
	env, err := installEnv(proxy, t.TempDir(), r.prefix)
	if err != nil {
		t.Fatal(err)
	}
	// What comes from the module cache was checked when it got there.
	return &user{t, t.TempDir(), append(env, "GOSUMDB=off")}
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

// TestUser installs the program, gets every module and builds the examples of the repository,
// from an empty directory. The examples have the code of the README (package examples/docs).
func TestUser(t *testing.T) {
	r, proxy := published(t)
	u := newUser(t, r, proxy)
	u.runs("", "go", "install", "-trimpath", r.prefix+"/cmd/spillway@"+version)
	for _, v := range u.env {
		if gopath, ok := strings.CutPrefix(v, "GOPATH="); ok {
			if got := u.runs("", filepath.Join(gopath, "bin", "spillway"), "--version"); !strings.HasPrefix(got, "spillway "+version+" ") {
				t.Errorf("the program says %q", got)
			}
		}
	}

	u.writes("own/go.mod", "module example.org/own\n\ngo 1.26.0\n")
	imports := new(strings.Builder)
	for _, m := range r.modules {
		if m.dir != "cmd/spillway" {
			fmt.Fprintf(imports, "import _ %q\n", m.path)
		}
	}
	u.writes("own/all.go", "package own\n\n"+imports.String())
	for _, m := range r.modules {
		u.runs("own", "go", "get", m.path+"@"+version)
	}
	u.runs("own", "go", "build", "-trimpath", "./...")

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
