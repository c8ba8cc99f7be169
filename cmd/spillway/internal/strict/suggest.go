package strict

import (
	"reflect"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
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
			if d := levenshtein.ComputeDistance(word, name); name != "" && (d < least || d == least && name < best) {
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
