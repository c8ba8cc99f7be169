package main

import (
	"bytes"
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

// checkout makes a repository with one module, and changes the working directory to it.
func checkout(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"go.mod": "module example.com/x\n\ngo 1.26.0\n", "x.go": "package x\n", "gone.go": "package x\n", "LICENSE": "none\n", ".gitignore": "*.out\n",
	} {
		write(t, name, text)
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-q", "-m", "x"}} {
		if _, err := git(".", args...); err != nil {
			t.Fatal(err)
		}
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// latest returns the version of the module that the go command finds after the printed line, and nothing else to ask.
func latest(t *testing.T, line string) string {
	t.Helper()
	cmd := exec.Command("sh", "-ec", line+"\ngo list -m -f '{{.Version}}' example.com/x@latest")
	cmd.Dir = t.TempDir()
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GO") }),
		"GOPROXY=off", "GOFLAGS=-modcacherw", "GOTOOLCHAIN=local", "GOPATH="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return strings.TrimSpace(string(out))
}

// TestTry: whatever the name of the directory, the go command finds the files as they are, also those that are not
// committed. After a change it finds another version.
func TestTry(t *testing.T) {
	checkout(t)
	dir := filepath.Join(t.TempDir(), `a b,c$HOME"d'|é`)
	tried := func() (version string) {
		var line bytes.Buffer
		if err := try("v0.1.0", dir, &line, io.Discard); err != nil {
			t.Fatal(err)
		}
		version = latest(t, line.String())
		if !strings.HasPrefix(version, "v0.1.0-try.20") {
			t.Errorf("the version is %q", version)
		}
		return version
	}
	first := tried()
	if again := tried(); again != first {
		t.Errorf("the same files are %s and %s", first, again)
	}
	write(t, "x.go", "package x // changed\n")
	write(t, "new.go", "package x\n")
	write(t, "new.out", "ignored\n")
	write(t, "no: module", "has this name\n")
	if err := os.Remove("gone.go"); err != nil {
		t.Fatal(err)
	}
	second := tried()
	if second == first {
		t.Errorf("other files have the same version %s", first)
	}
	files := unzipped(t, filepath.Join(dir, "example.com", "x", "@v", second+".zip"), "example.com/x@"+second+"/")
	if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, []string{".gitignore", "LICENSE", "go.mod", "new.go", "x.go"}) || files["x.go"] != "package x // changed\n" {
		t.Errorf("the module has %q, and %q", got, files["x.go"])
	}
}

// TestTryOutside: without a clone there is nothing to try.
func TestTryOutside(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := try("v0.1.0", t.TempDir(), io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "clone") {
		t.Errorf("got %v, want an error that asks for a clone", err)
	}
}

// TestInstall: before the first release no document has a command that gets or installs something, unless it said before
// what works today.
func TestInstall(t *testing.T) {
	said := make(map[string]bool)
	for _, s := range documents(t) {
		said[s.File] = said[s.File] || strings.Contains(s.Lead, "Before the first release") &&
			(strings.Contains(s.Lead, "`make try`") || strings.Contains(s.Lead, "`go install ./cmd/spillway`") || s.File == snippets.Start)
		for _, command := range s.Commands() {
			if ours := strings.HasPrefix(command, "go get ") || strings.HasPrefix(command, "go install "); ours && !said[s.File] {
				t.Errorf("%s: %s: nothing before it says what works before the first release: see docs/start.md", s, command)
			}
		}
	}
	if len(said) < 20 {
		t.Errorf("only %d documents", len(said))
	}
}
