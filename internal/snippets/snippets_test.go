package snippets

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestAll(t *testing.T) {
	const text = "# Title\n\nSave this as `a.yaml`:\n\n```yaml\na: 1\n```\n\nThen\n\n```sh\n# why\nspillway check a.yaml  # fast\n\nmake site && x\nrm x\n```\n"
	all, err := All(fstest.MapFS{
		"docs/a.md":       {Data: []byte(text)},
		"docs/start.md":   {Data: []byte("```sh\ncurl http://127.0.0.1/\n```\n")},
		"x/testdata/b.md": {Data: []byte("```\n```\n")},
		"dist/c.md":       {Data: []byte("```\n```\n")},
		".git/d.md":       {Data: []byte("```\n```\n")},
	})
	if err != nil || len(all) != 3 {
		t.Fatal(all, err)
	}
	file, shell := all[0], all[1]
	if file.String() != "docs/a.md:5" || file.Kind != "yaml" || file.Text != "a: 1\n" || !strings.Contains(file.Lead, "`a.yaml`") || !file.Is(Program) {
		t.Errorf("%+v", file)
	}
	if strings.TrimSpace(shell.Lead) != "Then" || !slices.Equal(shell.Commands(), []string{"spillway check a.yaml", "make site && x", "rm x"}) {
		t.Errorf("%q: %q", shell.Lead, shell.Commands())
	}
	if got := shell.By(); !slices.Equal(got, []string{Program, Repository, ""}) || !shell.Is(Repository) || shell.Is(Installed) {
		t.Errorf("%q", got)
	}
	if !all[2].Is(Installed) {
		t.Errorf("%s belongs to %q", all[2], all[2].By())
	}
}

func TestUnknown(t *testing.T) {
	for kind, text := range map[string]string{"": "x", "python": "x", "sh": "curl http://127.0.0.1:9000/"} {
		if s := (Snippet{File: "a.md", Kind: kind, Text: text}); !s.Is("") {
			t.Errorf("%q belongs to %q", kind, s.By())
		}
	}
	_, err := All(fstest.MapFS{"a.md": {Data: []byte("one\n\n- two\n\n    go test\n")}})
	if err == nil || !strings.Contains(err.Error(), "a.md:5: ") {
		t.Error(err)
	}
}
