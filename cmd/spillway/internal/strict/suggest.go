package strict

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// suggest returns the field in a t that a misspelled one may have been meant to be, as
// the end of a sentence.
func suggest(word string, t reflect.Type) string {
	if len(word) > 40 {
		return ""
	}
	names := make(map[string]bool)
	collect(t, names, make(map[reflect.Type]bool))
	best, least := "", 3 // more changes than two make another word
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if d := distance(word, name); d < least {
			best, least = name, d
		}
	}
	if best == "" || least == 0 {
		return ""
	}
	return "; did you mean " + best + "?"
}

// collect finds the names of all fields in t. Types that were seen are not looked at
// again.
func collect(t reflect.Type, names map[string]bool, seen map[reflect.Type]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		collect(t.Elem(), names, seen)
	case reflect.Struct:
		for f := range t.Fields() {
			if name, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); name != "" {
				names[name] = true
			}
			collect(f.Type, names, seen)
		}
	default: // a value
	}
}

// distance is how many letters must be put in, left out or replaced to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
