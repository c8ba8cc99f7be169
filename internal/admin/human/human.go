// Package human writes figures as people read them.
package human

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin/page"
)

// Grouped returns n with its digits in groups of three.
func Grouped(n float64) string { return page.Grouped(math.Round(n), 0) }

// PerSecond returns a rate as people read it: 1,234/s, or 3.4/s.
func PerSecond(rate float64) string {
	if rate > 0 && rate < 9.95 {
		return strconv.FormatFloat(max(rate, 0.1), 'f', 1, 64) + "/s"
	}
	return Grouped(rate) + "/s"
}

// Percent returns a share as people read it. Only all is 100 %, and only nothing 0 %.
func Percent(share float64) string {
	switch p := 100 * share; {
	case p <= 0:
		return "0 %"
	case p < 0.1:
		return "<0.1 %"
	case p < 9.95:
		return strconv.FormatFloat(p, 'f', 1, 64) + " %"
	case p < 100:
		return strconv.FormatFloat(min(math.Round(p), 99), 'f', 0, 64) + " %"
	default:
		return Grouped(p) + " %"
	}
}

// Duration returns milliseconds as people read them.
func Duration(ms float64) string {
	switch {
	case ms < 0.9995:
		return strconv.FormatFloat(1000*ms, 'f', 0, 64) + " µs"
	case ms < 9.95:
		return strconv.FormatFloat(ms, 'f', 1, 64) + " ms"
	case ms < 999.5:
		return strconv.FormatFloat(ms, 'f', 0, 64) + " ms"
	default:
		return strconv.FormatFloat(ms/1000, 'f', 2, 64) + " s"
	}
}

// Listed returns words with commas, and "or" before the last.
func Listed(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// Counted returns a number of things by their word.
func Counted(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%s %ss", Grouped(float64(n)), word)
}

// ClassShares returns the share of each class that was rejected, the lowest first: "81 % of
// SHEDDABLE, none of CRITICAL". Classes without requests are left out.
func ClassShares(rejected, ended [spillway.Criticalities]float64) string {
	var parts, none []string
	for class, came := range ended {
		name := (spillway.Criticality(class) + spillway.Sheddable).String()
		switch {
		case came <= 0:
		case rejected[class] <= 0:
			none = append(none, name)
		default:
			parts = append(parts, Percent(min(1, rejected[class]/came))+" of "+name)
		}
	}
	if len(none) > 0 {
		parts = append(parts, "none of "+Listed(none))
	}
	return strings.Join(parts, ", ")
}
