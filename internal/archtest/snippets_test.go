package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/internal/snippets"
)

// TestSnippets: each block of code in a document belongs to a test, and commands for a
// checkout name what exists.
func TestSnippets(t *testing.T) {
	fsys := os.DirFS("../..")
	all, err := snippets.All(fsys)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 60 {
		t.Errorf("only %d snippets", len(all))
	}
	for _, s := range all {
		if len(s.By()) == 0 || s.Is("") {
			t.Errorf("%s: no test tries this block of kind %q: package snippets says which kinds and commands have one", s, s.Kind)
		}
		for i, command := range s.Commands() {
			if s.File == snippets.Start || s.By()[i] != snippets.Repository {
				continue
			}
			if missing := missingFor(fsys, command); missing != "" {
				t.Errorf("%s: %s: %s", s, command, missing)
			}
		}
	}
}

func TestMissingFor(t *testing.T) {
	fsys := os.DirFS("../..")
	for command, want := range map[string]string{
		"make site ARGS=x": "", "make sites": "the Makefile has no target sites", "make bench-gone NAME=a": "the Makefile has no target bench-gone",
		"make": "make has no target", "make bench GONE=1": "the Makefile has no variable GONE",
		"go test work": "", "go test ./shed -run Cap": "", "go test ./gone": "there is no package ./gone",
		"go test ./shed -run NoSuchTest": "no test matches NoSuchTest", "go run ./tools/pictures": "", "go run ./gone -x": "there is no package ./gone",
		"go run ./benchmarks/concurrency -gone": "./benchmarks/concurrency has no flag gone",
	} {
		if got := missingFor(fsys, command); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}

var (
	quoted       = regexp.MustCompile(`"[^"]*"`)
	localPackage = regexp.MustCompile(`(?:^|\s)(\./[\w/.-]+)`)
	runPattern   = regexp.MustCompile(`-(?:run|bench) '?([^'\s]+)`)
	runFlag      = regexp.MustCompile(`\s--?([a-z][a-z-]*)`)
)

// missingFor returns what a command for a checkout names and does not exist.
func missingFor(fsys fs.FS, command string) string {
	words := strings.Fields(quoted.ReplaceAllString(command, "x"))
	if words[0] == "make" {
		return missingTarget(fsys, words[1:])
	}
	dir := localPackage.FindStringSubmatch(command)
	if dir == nil {
		return "" // all packages
	}
	text := sources(fsys, strings.TrimPrefix(dir[1], "./"))
	if text == "" {
		return "there is no package " + dir[1]
	}
	switch words[1] {
	case "test":
		for _, p := range runPattern.FindAllStringSubmatch(command, -1) {
			if !matches(p[1], text) {
				return "no test matches " + p[1]
			}
		}
	case "run":
		for _, flag := range runFlag.FindAllStringSubmatch(command, -1) {
			if flag[1] != "help" && !strings.Contains(text, `"`+flag[1]+`"`) {
				return dir[1] + " has no flag " + flag[1]
			}
		}
	}
	return ""
}

// missingTarget returns a target of make, or a variable, that does not exist.
func missingTarget(fsys fs.FS, words []string) string {
	if len(words) == 0 {
		return "make has no target"
	}
	text, _ := fs.ReadFile(fsys, "Makefile")
	for _, word := range words {
		name, _, variable := strings.Cut(word, "=")
		switch {
		case variable && !strings.Contains(string(text), "$("+name):
			return "the Makefile has no variable " + name
		case !variable && !strings.Contains(string(text), "\n"+name+":"):
			return "the Makefile has no target " + name
		}
	}
	return ""
}

// sources returns the text of a package.
func sources(fsys fs.FS, dir string) string {
	var b strings.Builder
	files, _ := fs.Glob(fsys, filepath.ToSlash(filepath.Join(dir, "*.go")))
	for _, name := range files {
		text, _ := fs.ReadFile(fsys, name)
		b.Write(text)
	}
	return b.String()
}

// matches reports whether a test, benchmark or example of a package matches each alternative of a
// pattern, whose first part is that of the function.
func matches(pattern, text string) bool {
	if pattern == "^$" {
		return true
	}
	head, _, _ := strings.Cut(pattern, "/")
	for alternative := range strings.SplitSeq(strings.Trim(head, "^$()"), "|") {
		if !regexp.MustCompile(`func (Test|Benchmark|Example|Fuzz)\w*`+regexp.QuoteMeta(alternative)).MatchString(text) &&
			!regexp.MustCompile(`func `+regexp.QuoteMeta(alternative)).MatchString(text) {
			return false
		}
	}
	return true
}
