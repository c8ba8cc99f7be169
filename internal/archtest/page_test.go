package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestArchitecturePage: the files that docs/architecture.md names exist.
func TestArchitecturePage(t *testing.T) {
	text, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`[a-z/_]+\.go\b`).FindAllString(string(text), -1)
	if len(names) < 20 {
		t.Errorf("%d files, want at least 20", len(names))
	}
	for _, name := range names {
		if found, _ := filepath.Glob("../../" + name); len(found) > 0 {
			continue
		}
		if found, _ := filepath.Glob("../../*/" + filepath.Base(name)); len(found) == 0 || filepath.Base(name) != name {
			t.Errorf("there is no file %s", name)
		}
	}
}
