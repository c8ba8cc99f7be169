// Package textpage writes the pages of the admin listener that are plain text or JSON.
package textpage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"
)

// Serve answers with a text.
func Serve(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) // a client that has left does not read it
}

// ServeJSON answers with a value as JSON.
func ServeJSON(w http.ResponseWriter, v any) {
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil { // a number is none
		Serve(w, http.StatusInternalServerError, err.Error()+"\n")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(text, '\n')) // a client that has left does not read it
}

// Aligned returns the output of write with aligned columns. A tab ends each cell.
func Aligned(write func(io.Writer)) string {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	write(w)
	_ = w.Flush() // to memory
	return b.String()
}

// Row writes a line of cells for [Aligned]. Numbers of type float64 have four digits. Text is
// shortened, and its control characters are replaced, so that no name can start a new cell or line.
func Row(w io.Writer, cells ...any) {
	for i, c := range cells {
		if i > 0 {
			fmt.Fprint(w, "\t")
		}
		if f, ok := c.(float64); ok {
			c = strconv.FormatFloat(f, 'g', 4, 64)
		}
		fmt.Fprint(w, Clean(fmt.Sprint(c), mostCell))
	}
	fmt.Fprintln(w)
}

// mostCell is the most bytes of a cell.
const mostCell = 500

// Clean returns a copy of a text: at most so many bytes of valid UTF-8, with each control character replaced.
func Clean(text string, most int) string {
	cut := len(text) > most
	if cut {
		text = text[:most-utf8.UTFMax]
	}
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, text)
	for len(text) > most-utf8.UTFMax { // a byte that is replaced becomes three
		_, size := utf8.DecodeLastRuneInString(text)
		text, cut = text[:len(text)-size], true
	}
	if cut {
		return text + "…"
	}
	return strings.Clone(text)
}

// Tame shortens and quotes text that a client may have chosen, so that it stays in its cell.
func Tame(text string) string {
	const most = 200
	if len(text) > most {
		text = text[:most] + "…"
	}
	if text == "" {
		return "–"
	}
	if quoted := strconv.Quote(text); quoted != `"`+text+`"` {
		return quoted
	}
	return text
}
