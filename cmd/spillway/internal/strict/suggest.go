package strict

import (
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
	best, least := "", 3 // more changes than two make another word
	for _, of := range Structs(t, nil) {
		for f := range of.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			if d := distance(word, name); name != "" && (d < least || d == least && name < best) {
				best, least = name, d
			}
		}
	}
	if best == "" || least == 0 {
		return ""
	}
	return "; did you mean " + best + "?"
}

// Structs returns seen and the types of all other structs in t.
func Structs(t reflect.Type, seen []reflect.Type) []reflect.Type {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return Structs(t.Elem(), seen)
	case reflect.Struct:
		if slices.Contains(seen, t) {
			return seen
		}
		seen = append(seen, t)
		for f := range t.Fields() {
			seen = Structs(f.Type, seen)
		}
	default: // a value
	}
	return seen
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
