package config

import (
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
)

// Diff describes the changes from a to b, one line per field: its path, the old value and
// the new value. Elements of lists are identified by their names, if they have names. The
// values of fields with the tag secret, such as headers, are not shown.
func Diff(a, b *Config) []string { return diff(a, b) }

func diff[T any](a, b *T) []string {
	was, is := make(values), make(values)
	was.flatten("", reflect.ValueOf(a).Elem())
	is.flatten("", reflect.ValueOf(b).Elem())
	all := maps.Clone(was)
	maps.Copy(all, is)
	var lines []string
	for _, path := range slices.Sorted(maps.Keys(all)) {
		x, before := was[path]
		y, after := is[path]
		switch {
		case x == y && before == after:
		case !before:
			lines = append(lines, fmt.Sprintf("%s: set to %s", path, y.shown()))
		case !after:
			lines = append(lines, fmt.Sprintf("%s: removed, was %s", path, x.shown()))
		case x.secret:
			lines = append(lines, path+": is another one now")
		default:
			lines = append(lines, fmt.Sprintf("%s: %s is now %s", path, x.text, y.text))
		}
	}
	return lines
}

// values are the values of all fields that are set, by path.
type values map[string]value

type value struct {
	text   string
	secret bool
}

func (v value) shown() string {
	if v.secret {
		return "what is not shown"
	}
	return v.text
}

func (all values) flatten(path string, v reflect.Value) {
	visit(path, v, func(path string, v reflect.Value, tag reflect.StructTag) {
		switch {
		case v.IsZero():
		case v.Kind() == reflect.Pointer:
			all[path] = value{text: "given"}
		case v.Kind() != reflect.Struct:
			all[path] = value{fmt.Sprint(v.Interface()), tag.Get("secret") != ""}
		}
	})
}

// Values yields the fields of v, a struct of a configuration or a value with a name, that have
// a value, and the value. Values that may be secret are not shown.
func Values(name string, v any) iter.Seq2[string, string] {
	found := make(values)
	found.flatten(name, reflect.ValueOf(v))
	return func(yield func(field, value string) bool) {
		for _, path := range slices.Sorted(maps.Keys(found)) {
			if v := found[path]; (path != name || v.text != "given") && !yield(path, v.shown()) {
				return
			}
		}
	}
}

// Given returns the [Values] as lines.
func Given(name string, v any) (all []string) {
	for field, value := range Values(name, v) {
		all = append(all, field+": "+value)
	}
	return all
}
