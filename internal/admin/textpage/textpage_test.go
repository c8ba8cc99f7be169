package textpage

import (
	"strconv"
	"strings"
	"testing"
)

// FuzzTame holds that what clients choose stays in its cell.
func FuzzTame(f *testing.F) {
	for _, text := range []string{"", "alice", "a\tb", "a\nb", "\x1b[2J", strings.Repeat("ü", 200), "\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := Tame(text)
		if len(got) > 4*210 || strings.ContainsFunc(got, func(r rune) bool { return !strconv.IsPrint(r) }) {
			t.Errorf("%q became %q", text, got)
		}
	})
}
