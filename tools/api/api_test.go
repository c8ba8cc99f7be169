package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const source = `package shed

import "time"

type Config struct {
	Max, Min int
	wait     time.Duration
	Base
}

type Base = int

type Gate interface {
	Admit(now time.Time) (bool, error)
	own()
}

type Mode uint8

const (
	Enforce Mode = iota
	Observe
	off
)

var ErrFull error

func New(c Config) *Shedder { return nil }

type Shedder struct{ n int }

func (s *Shedder) Admit(class int) error { return nil }
func (s *Shedder) settle()               {}
func (m mode) Admit()                    {}

type mode int
`

var wanted = []string{
	"pkg spillway/shed, const Enforce Mode",
	"pkg spillway/shed, const Observe",
	"pkg spillway/shed, func New(c Config) *Shedder",
	"pkg spillway/shed, method (*Shedder) Admit(class int) error",
	"pkg spillway/shed, type Base = int",
	"pkg spillway/shed, type Config struct",
	"pkg spillway/shed, type Config struct, Max int",
	"pkg spillway/shed, type Config struct, Min int",
	"pkg spillway/shed, type Config struct, embedded Base",
	"pkg spillway/shed, type Gate interface",
	"pkg spillway/shed, type Gate interface, Admit (now time.Time) (bool, error)",
	"pkg spillway/shed, type Mode uint8",
	"pkg spillway/shed, type Shedder struct",
	"pkg spillway/shed, var ErrFull error",
}

// tree writes files below the working directory of the test.
func tree(t *testing.T, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSurface(t *testing.T) {
	t.Chdir(t.TempDir())
	tree(t, map[string]string{
		"shed/shed.go":           source,
		"shed/shed_windows.go":   "package shed\n\nvar ErrFull error\n",
		"shed/shed_test.go":      "package shed\n\nfunc Tested() {}\n",
		"shed/internal/x/x.go":   "package x\n\nfunc Inside() {}\n",
		"shed/testdata/t.go":     "package testdata\n\nfunc Data() {}\n",
		"cmd/spillway/main.go":   "package main\n\nfunc Main() {}\n",
		"cmd/spillway/serve.txt": "",
	})
	lines, err := surface(".")
	if err != nil || !slices.Equal(lines, wanted) {
		t.Errorf("%v, and\n%s", err, strings.Join(lines, "\n"))
	}
}

func TestNameOf(t *testing.T) {
	names := []string{"Enforce", "Observe", "New", "Admit", "Base", "Config", "Max", "Min", "Base", "Gate", "Admit", "Mode", "Shedder", "ErrFull"}
	for i, line := range wanted {
		if got := nameOf(line); got != names[i] {
			t.Errorf("%s: %s, want %s", line, got, names[i])
		}
	}
}

// TestCheck: what is new since the last release must be in the record and in the CHANGELOG.
func TestCheck(t *testing.T) {
	t.Chdir(t.TempDir())
	git := func(args ...string) {
		t.Helper()
		args = append([]string{"-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"}, args...)
		if said, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatal(err, string(said))
		}
	}
	git("init", "-q")
	git("commit", "-q", "--allow-empty", "-m", "nothing yet")
	step := func(name string, files map[string]string, want string) {
		t.Helper()
		tree(t, files)
		err := run(io.Discard, "api.txt")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	one, two := "pkg spillway/shed, func New()\n", "pkg spillway/shed, func Grow()\npkg spillway/shed, func New()\n"
	step("before a release", map[string]string{
		"shed/shed.go": "package shed\n\nfunc New() {}\n", "api.txt": one, "CHANGELOG.md": "# Changelog\n\n## Unreleased\n",
	}, "")
	git("add", ".")
	git("commit", "-q", "-m", "release")
	git("tag", "v0.1.0")
	step("not in the record", map[string]string{"shed/shed.go": "package shed\n\nfunc New() {}\n\nfunc Grow() {}\n"}, "api.txt lacks")
	step("not in the CHANGELOG", map[string]string{"api.txt": two}, "does not name what is new: pkg spillway/shed, func Grow()")
	step("in the section of a release", map[string]string{"CHANGELOG.md": "# Changelog\n\n## Unreleased\n\n## 0.1.0\n\n- `Grow`\n"}, "does not name what is new")
	step("in the CHANGELOG", map[string]string{"CHANGELOG.md": "# Changelog\n\n## Unreleased\n\n- `shed.Grow`\n\n## 0.1.0\n"}, "")
	step("gone", map[string]string{"shed/shed.go": "package shed\n\nfunc Grow() {}\n"}, "api.txt has what is gone")
}
