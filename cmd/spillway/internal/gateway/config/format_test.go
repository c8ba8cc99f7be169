package config

import (
	"strings"
	"testing"
)

// TestFormat reads what was written, and finds no difference.
func TestFormat(t *testing.T) {
	odd := "mode: \"off\"\n" + small + "    quota: {}\n    batch: {}\nroutes:\n  - headers: {X-A: \"no\", X-B: \"1e3\", X-C: \"a: b #c\", X-D: \"\"}\n  - {path: /a, exact: true}\n"
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
		if err := schema.Valid(t)(string(out)); err != nil {
			t.Errorf("%v:\n%s", err, out)
		}
	}
	if out, err := Format(new(Config)); err != nil || string(out) != "{}\n" {
		t.Errorf("nothing is %q, %v", out, err)
	}
}
