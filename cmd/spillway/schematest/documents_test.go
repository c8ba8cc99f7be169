package schematest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/internal/snippets"
)

// TestDocuments: the schemas know the files that documents show.
func TestDocuments(t *testing.T) {
	all, err := snippets.All(os.DirFS("../../.."))
	if err != nil {
		t.Fatal(err)
	}
	proxies, quotas, n := proxy.valid(t), quota.valid(t), 0
	for _, s := range all {
		if !s.Is(snippets.Program) || s.Kind != "yaml" || strings.Contains(s.Text, "typed_config:") {
			continue // not a file of the program: the last one is of Envoy
		}
		n++
		valid := proxies
		if strings.HasPrefix(s.Text, "domain:") {
			valid = quotas
		}
		if err := valid(s.Text); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	if n < 10 {
		t.Errorf("only %d files", n)
	}
}

// TestExamples: the schema knows the configurations that come along, and those that the importer makes.
func TestExamples(t *testing.T) {
	valid := proxy.valid(t)
	imported, err := filepath.Glob(internal + "gateway/importer/testdata/*.golden")
	if err != nil || len(imported) < 2 {
		t.Fatal(err, imported)
	}
	for _, name := range append(imported, "../testdata/proxy/shop.yaml", "../../../deploy/spillway.yaml") {
		text, _, _ := strings.Cut(read(t, name), "---\n")
		if err := valid(text); err != nil {
			t.Errorf("%s: %v:\n%s", name, err, text)
		}
	}
}
