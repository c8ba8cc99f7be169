package archtest

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

// TestLinks fails for each link in a document that leads to no file.
func TestLinks(t *testing.T) {
	dead, err := deadLinks(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range dead {
		t.Error(link, "leads nowhere: mend the link")
	}
}

func TestDeadLinksAreFound(t *testing.T) {
	dead, err := deadLinks(fstest.MapFS{
		"README.md":    {Data: []byte("[a](docs/a.md#top) [web](https://example.org/x) [here](#here) ![b](docs/b.png)")},
		"docs/a.md":    {Data: []byte("[up](../README.md) [dir](../docs) [gone](README.md)\n```go\nf[T](x)\n```\n")},
		"docs/b.png":   {},
		"dist/skip.md": {Data: []byte("[gone](gone.md)")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(dead, ","), "docs/a.md: README.md"; got != want {
		t.Errorf("dead links %q, want %q", got, want)
	}
}

// link matches the target of a link to a file of this repository.
var link = regexp.MustCompile(`\]\(([^):#]+)(?:#[^)]*)?\)`)

// fence matches a block of code, in which type arguments look like links.
var fence = regexp.MustCompile("(?ms)^```.*?^```")

// deadLinks returns the relative links of all Markdown files that lead to no
// file, each after the name of its document.
func deadLinks(fsys fs.FS) (dead []string, err error) {
	err = walk(fsys, func(name string) error {
		if path.Ext(name) != ".md" {
			return nil
		}
		text, err := fs.ReadFile(fsys, name)
		for _, match := range link.FindAllSubmatch(fence.ReplaceAll(text, nil), -1) {
			to := string(match[1])
			if _, err := fs.Stat(fsys, path.Join(path.Dir(name), to)); err != nil {
				dead = append(dead, name+": "+to)
			}
		}
		return err
	})
	return dead, err
}
