package strict

import "testing"

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "",
		"größer\n\t\"1\" > '0'":   "größer\n\t\"1\" > '0'",
		"a\x1b[31mb\x07\rc\x7f":   `a\x1b[31mb\a\rc\x7f`,
		"\u009b2J\u202eabc\u00a0": `\u009b2J\u202eabc\u00a0`,
		"a\xffb":                  `a\xffb`,
		"a\ufffdb":                "a\ufffdb",
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

// TestKeysAreQuoted reads files whose keys, or lines, would move the cursor of a terminal.
func TestKeysAreQuoted(t *testing.T) {
	for text, want := range map[string]string{
		`"a\e[31mb": 1`:       "f:1: a\\x1b[31mb is no field here\n>    1 | \"a\\e[31mb\": 1",
		"a\u202eb: 1":         "f:1: a\\u202eb is no field here\n>    1 | a\\u202eb: 1",
		"name: a\rname: \x1b": "f: is not YAML: control characters are not allowed",
	} {
		if err := (Source{"f", []byte(text)}).Decode(new(file), 1<<16); err == nil || err.Error() != want {
			t.Errorf("%q:\ngot  %q\nwant %q", text, err, want)
		}
	}
}
