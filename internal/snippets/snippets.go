// Package snippets reads the blocks of code in the documents of this repository. Each block, and each command in a
// block of shell, belongs to one test, which runs, compiles or validates it. Only tests import it.
package snippets

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// The directories of the tests.
const (
	Compiled   = "examples/docs"     // finds Go code in files that are compiled
	Program    = "cmd/spillway"      // runs the program, loads its files, checks expressions
	Installed  = "tools/release"     // installs modules, and follows docs/start.md and README.md in empty directories
	Repository = "internal/archtest" // checks that packages and targets of make exist
	Deployed   = "tools/deploy"      // builds the base, and renders the chart with the values of each command
	Untried    = "none"              // for text that is no code
)

// Start is the document that a newcomer follows from beginning to end, and Readme the one before it.
const (
	Start  = "docs/start.md"
	Readme = "README.md"
)

// A Snippet is one block of code.
type Snippet struct {
	File string // path from the root of the repository
	Line int    // of the fence
	Kind string // the word after the fence
	Text string
	Lead string // the text between the snippet before it and this one
}

func (s Snippet) String() string { return fmt.Sprintf("%s:%d", s.File, s.Line) }

// Commands returns the commands of a snippet of shell, without comments.
func (s Snippet) Commands() (all []string) {
	for line := range strings.Lines(s.Text) {
		if line, _, _ = strings.Cut(strings.TrimSpace(line), " #"); s.Kind == "sh" && line != "" && line[0] != '#' {
			all = append(all, strings.TrimSpace(line))
		}
	}
	return all
}

// By returns the directory of the test of the snippet, for a snippet of shell that of each
// command. It is empty if no test knows what to do.
func (s Snippet) By() (tests []string) {
	switch {
	case s.File == Start:
		return []string{Installed}
	case s.Kind == "sh":
		for _, command := range s.Commands() {
			tests = append(tests, byCommand(command))
		}
		return tests
	}
	return []string{byKind[s.Kind]}
}

// Is reports whether the test in a directory tries the snippet, or some of its commands.
func (s Snippet) Is(dir string) bool {
	return slices.Contains(s.By(), dir)
}

var byKind = map[string]string{"go": Compiled, "yaml": Program, "promql": Program, "diff": Untried, "text": Untried}

// byCommand returns the directory of the test of a command.
func byCommand(command string) string {
	for _, rule := range []struct{ prefix, test string }{
		{"spillway ", Program},
		{"go run ./cmd/spillway ", Program},
		{"sudo spillway ", Program},
		{"kubectl apply -k deploy", Deployed},
		{"helm install ", Deployed},
		{"kubectl ", Program},
		{"for pod in $(kubectl ", Program},
		{"go get ", Installed},
		{"go install ", Installed},
		{"go run ./", Repository},
		{"go test ", Repository},
		{"go tool pprof ", Repository},
		{"make ", Repository},
		{"mkdir ../shop ", Installed},
		{"go mod init ", Installed},
		{"go run .", Installed},
	} {
		if strings.HasPrefix(command, rule.prefix) {
			return rule.test
		}
	}
	if strings.HasPrefix(command, "curl ") && strings.Contains(command, "http://127.0.0.1:8001/") { // the admin address
		return Program
	}
	return ""
}

var (
	fence    = regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```$")
	indented = regexp.MustCompile(`(?m)\n\n {4,}[^ \n]`)
)

// All returns the snippets of all documents in a tree. It returns an error for a block of code
// that is indented, because the block has no kind.
func All(fsys fs.FS) (all []Snippet, err error) {
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name != "." && strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "dist"):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".md":
			return nil
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		found, err := of(name, string(text))
		all = append(all, found...)
		return err
	})
	return all, err
}

// of returns the snippets of one document.
func of(name, text string) (all []Snippet, err error) {
	end := 0
	for _, at := range fence.FindAllStringSubmatchIndex(text, -1) {
		all = append(all, Snippet{
			File: name,
			Line: 1 + strings.Count(text[:at[0]], "\n"),
			Kind: text[at[2]:at[3]],
			Text: text[at[4]:at[5]],
			Lead: text[end:at[0]],
		})
		end = at[1]
	}
	prose := fence.ReplaceAllStringFunc(text, func(block string) string { return strings.Repeat("\n", strings.Count(block, "\n")) + "." })
	if at := indented.FindStringIndex(prose); at != nil {
		return all, fmt.Errorf("%s:%d: a block of code that is indented has no kind: use a fence", name, 3+strings.Count(prose[:at[0]], "\n"))
	}
	return all, nil
}
