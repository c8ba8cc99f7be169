package query

import (
	"strings"
	"testing"
	"unicode"
)

func TestPlain(t *testing.T) {
	for _, row := range []struct {
		text, want string
		most       int
	}{
		{"acme", "acme", 128}, {"Müller & Søn – „x“", `Müller & Søn – \u201ex“`, 128}, {"Ярослав", "Ярослав", 128},
		{"a\nb\tc", `a\nb\tc`, 128}, {"\x1b[2J", `\x1b[2J`, 128}, {"\xff", "?", 128}, {"\u202eabc", `\u202eabc`, 128},
		{"e\u0301", `e\u0301`, 128}, {"\u65e5\u672c", `\u65e5\u672c`, 128}, {"\u009b", `\u009b`, 128}, {"abcdef", "abc…", 3}, {"abc", "abc", 3}, {"", "", 3},
	} {
		if got := Plain(row.text, row.most); got != row.want {
			t.Errorf("%q became %q, want %q", row.text, got, row.want)
		}
	}
}

// FuzzPlain holds that what is shown is printable, and bounded.
func FuzzPlain(f *testing.F) {
	for _, text := range []string{"", "acme", "a\tb", "\x1b[2J", strings.Repeat("ü", 200), "\xff", "\u202e", "\u65e5"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := Plain(text, 100)
		if strings.ContainsFunc(got, func(r rune) bool { return !isPlain(r) || unicode.IsControl(r) }) {
			t.Errorf("%q became %q", text, got)
		}
		if len(got) > 100*10+10 {
			t.Errorf("%q has %d bytes", text, len(got))
		}
	})
}
