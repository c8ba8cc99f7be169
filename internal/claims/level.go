package claims

import (
	"strconv"
	"strings"

	"github.com/seed90641741/spillway"
)

// LevelValues and ProgressValues are the values of the fields that say a level and a progress. They are shared. The values for 0 are
// nil: an absent field means 0.
var (
	LevelValues    = numbers[[spillway.Levels + 1][]string]()
	ProgressValues = numbers[[256][]string]()
)

func numbers[T [spillway.Levels + 1][]string | [256][]string]() (all T) {
	for i := 1; i < len(all); i++ {
		all[i] = []string{strconv.Itoa(i)}
	}
	return all
}

// leastLevel returns the lowest level in the values of its field, or 0.
func leastLevel(values []string) (least spillway.Level) {
	for _, v := range values {
		if l := levelIn(v); least == 0 || l > 0 && l < least {
			least = l
		}
	}
	return least
}

// leastProgress returns the lowest progress in the values of its field.
func leastProgress(values []string) (least spillway.Progress) {
	for i, v := range values {
		if p, _ := numberIn(v, 255); i == 0 || p < int(least) {
			least = spillway.Progress(p)
		}
	}
	return least
}

// levelIn returns the level that a text is, or 0.
func levelIn(text string) spillway.Level {
	n, _ := numberIn(text, spillway.Levels)
	return spillway.Level(n)
}

// numberIn returns the decimal number that a text is, if it is at most highest.
func numberIn(text string, highest int) (n int, ok bool) {
	return Number(strings.TrimSpace(text), highest)
}

// Number returns the decimal number of at most three digits that a text is, if it is at most highest.
func Number[T string | []byte](text T, highest int) (n int, ok bool) {
	if len(text) == 0 || len(text) > 3 {
		return 0, false
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
		n = 10*n + int(text[i]-'0')
	}
	if n > highest {
		return 0, false
	}
	return n, true
}

// TraceLevel returns a level made of the trace id in the field traceparent of W3C Trace Context, which is the same for all calls
// of a trace, or 0. It is made of the last bits, which are random.
func TraceLevel(traceparent []string) spillway.Level {
	if len(traceparent) != 1 {
		return 0
	}
	return TraceLevelOf(traceparent[0])
}

// TraceLevelOf is TraceLevel of a field that comes once.
func TraceLevelOf[T string | []byte](traceparent T) spillway.Level {
	const version, id, rest = 2, 35, 55 // the first two, and the parent, end there
	if len(traceparent) < rest || traceparent[version] != '-' || traceparent[id] != '-' {
		return 0
	}
	bits, err := strconv.ParseUint(string(traceparent[id-16:id]), 16, 64)
	if err != nil || bits == 0 {
		return 0
	}
	return spillway.Level(bits%spillway.Levels) + 1
}
