package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// README.md describes each scenario as the code does.
func TestReadme(t *testing.T) {
	b, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, sc := range suite() {
		needed := "no"
		if sc.Overload {
			needed = "yes"
		}
		if line := fmt.Sprintf("| %s | %s | %s |\n", sc.Name, sc.About, needed); !strings.Contains(string(b), line) {
			t.Errorf("README.md lacks the line %q", line)
		}
	}
	if n := strings.Count(string(b), " | yes |\n") + strings.Count(string(b), " | no |\n"); n != len(suite()) {
		t.Errorf("README.md has %d scenarios, there are %d", n, len(suite()))
	}
}
