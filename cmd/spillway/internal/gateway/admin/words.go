package admin

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/seed90641741/spillway"
)

// grouped returns n with its digits in groups of three.
func grouped(n float64) string {
	text := strconv.FormatFloat(math.Round(n), 'f', 0, 64)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// perSecond returns a rate as people read it: 1,234/s, or 3.4/s.
func perSecond(rate float64) string {
	if rate > 0 && rate < 9.95 {
		return strconv.FormatFloat(max(rate, 0.1), 'f', 1, 64) + "/s"
	}
	return grouped(rate) + "/s"
}

// percent returns a share as people read it. Only all is 100 %, and only nothing 0 %.
func percent(share float64) string {
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
		return grouped(p) + " %"
	}
}

// duration returns milliseconds as people read them.
func duration(ms float64) string {
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

// classShares returns the share of each class that was rejected, the lowest first: "81 % of
// SHEDDABLE, none of CRITICAL". Classes without requests are left out.
func classShares(rejected, ended Classes) string {
	var parts, none []string
	for class, came := range ended {
		name := (spillway.Criticality(class) + spillway.Sheddable).String()
		switch {
		case came <= 0:
		case rejected[class] <= 0:
			none = append(none, name)
		default:
			parts = append(parts, percent(min(1, rejected[class]/came))+" of "+name)
		}
	}
	if len(none) > 0 {
		parts = append(parts, "none of "+listed(none))
	}
	return strings.Join(parts, ", ")
}

func listed(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

func counted(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%s %ss", grouped(float64(n)), word)
}
