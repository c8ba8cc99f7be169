package report

import (
	"math"
	"strconv"
	"strings"

	"github.com/seed90641741/spillway/internal/admin/page"
)

// None stands where there is no number. The space before a unit does not break.
const (
	none = "–"
	nbsp = "\u00a0"
)

// number writes v with as many decimals as its size deserves, in groups of
// three digits.
func number(v float64) string {
	decimals := 0
	if a := math.Abs(v); a < 9.95 && a != math.Trunc(a) {
		decimals = 1
		if a < 0.095 {
			decimals = 2
		}
	}
	return fixed(v, decimals)
}

func fixed(v float64, decimals int) string {
	return strings.Replace(page.Grouped(v, decimals), "-", "−", 1)
}

func count(v float64) string     { return fixed(v, 0) }
func perSecond(v float64) string { return number(v) + "/s" }
func percent(v float64) string   { return fixed(100*v, 1) + nbsp + "%" }
func times(v float64) string     { return fixed(v, 2) }
func seconds(v float64) string   { return fixed(v, 2) + nbsp + "s" }

// asSet writes a setting as it was given.
func asSet(v float64, unit string) string { return strconv.FormatFloat(v, 'g', 4, 64) + unit }

func millis(v float64) string {
	if v >= 999.5 {
		return seconds(v / 1000)
	}
	return fixed(v, 1) + nbsp + "ms"
}

// ratio says how many times b is of a.
func ratio(a, b float64) string {
	switch {
	case a == b:
		return "same"
	case a == 0:
		return "from 0"
	case b == 0:
		return "to 0"
	case math.Abs(b/a-1) < 0.05:
		return "about the same"
	case b > a:
		return "×" + nbsp + scale(b/a)
	default:
		return "÷" + nbsp + scale(a/b)
	}
}

func scale(v float64) string {
	if v < 9.95 {
		return fixed(v, 1)
	}
	return count(v)
}

// difference returns a func that says how far b is from a.
func difference(text func(float64) string) func(a, b float64) string {
	return func(a, b float64) string {
		switch {
		case a == b:
			return "same"
		case b > a:
			return "+" + text(b-a)
		default:
			return "−" + text(a-b)
		}
	}
}

func points(v float64) string { return fixed(100*v, 1) + " points" }

// plain writes v as JSON does.
func plain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
