package strict

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable returns a text in which all that is not shown as it is, such as an escape that a terminal obeys, is
// written as in a string of Go. Line feeds and tabs stay.
func Printable(text string) string {
	if !strings.ContainsFunc(text, hidden) {
		return text // as nearly always
	}
	var b strings.Builder
	for i, r := range text {
		switch {
		case !hidden(r):
			b.WriteRune(r)
		case r == utf8.RuneError && text[i] != 0xEF: // and so no rune of the text
			fmt.Fprintf(&b, `\x%02x`, text[i])
		default:
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}

// hidden reports whether a rune is not to be written as it is. What is no UTF-8 is such a rune.
func hidden(r rune) bool {
	return r != '\n' && r != '\t' && (r == utf8.RuneError || !unicode.IsPrint(r))
}
