// Package page has what the pages of this program share: the colours, and the library
// that draws charts.
package page

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strconv"
	"strings"
)

// Palette is the colours, as custom properties of CSS, each for the light and the dark
// theme.
//
//go:embed palette.css
var Palette string

// UPlotStyle is the style that [UPlot] needs.
//
//go:embed uplot/uPlot.min.css
var UPlotStyle string

//go:embed uplot/uPlot.iife.min.js
var uplot string

//go:embed uplot/LICENSE
var license string

// UPlot is a script that draws charts, with its licence.
var UPlot = "/*\n" + license + "\n*/\n" + uplot

// A Verdict is the result of all checks in one word, with its CSS class and an explanation.
type Verdict struct{ Class, Word, Text string }

// VerdictOf returns the verdict of checks. Its text has the noun, such as checks, and without any checks
// the participle, such as checked.
func VerdictOf[T any](checks []T, pass func(T) bool, noun, participle string) Verdict {
	held := 0
	for _, c := range checks {
		if pass(c) {
			held++
		}
	}
	switch n := len(checks); {
	case n == 0:
		return Verdict{"stopped", "NO VERDICT", "nothing was " + participle}
	case held == n:
		return Verdict{"pass", "PASS", fmt.Sprintf("all %d %s hold", n, noun)}
	default:
		return Verdict{"fail", "FAIL", fmt.Sprintf("%d of %d %s do not hold", n-held, n, noun)}
	}
}

// Write writes a page to w. It writes nothing if it fails before the page is complete.
func Write(w io.Writer, t *template.Template, view any) error {
	var b bytes.Buffer
	if err := t.Execute(&b, view); err != nil {
		return err
	}
	_, err := b.WriteTo(w)
	return err
}

// Grouped returns v with so many decimals, and its other digits in groups of three: 1,234.5.
func Grouped(v float64, decimals int) string {
	whole, fraction, some := strings.Cut(strconv.FormatFloat(v, 'f', decimals, 64), ".")
	for i := len(whole) - 3; i > 0 && whole[i-1] != '-'; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if some {
		whole += "." + fraction
	}
	return whole
}

// Policy returns a content security policy that allows the given styles and scripts, by their hashes,
// and nothing else: no request can leave the page.
func Policy(styles, scripts []string) string {
	var policy strings.Builder
	policy.WriteString("default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:")
	for _, kind := range []struct {
		directive string
		texts     []string
	}{{"; style-src", styles}, {"; script-src", scripts}} {
		if len(kind.texts) > 0 {
			policy.WriteString(kind.directive)
		}
		for _, text := range kind.texts {
			policy.WriteString(Hash(text))
		}
	}
	return policy.String()
}

// Hash returns what allows a style or a script in a content security policy, after a
// space.
func Hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
