package config

import (
	_ "embed"
	"strings"
	"testing"
)

//go:embed testdata/good/odd.yaml
var odd string

// TestFormat reads what was written, and finds no difference.
func TestFormat(t *testing.T) {
	for _, text := range []string{small, full, odd} {
		c := parse(t, text)
		out, err := Format(c)
		if err != nil {
			t.Fatal(err)
		}
		again := parse(t, string(out))
		if d := Diff(c, again); len(d) > 0 || len(Diff(again, c)) > 0 {
			t.Errorf("after it was written: %s\n%s", strings.Join(d, "\n"), out)
		}
	}
	if out, err := Format(new(Config)); err != nil || string(out) != "{}\n" {
		t.Errorf("nothing is %q, %v", out, err)
	}
}
