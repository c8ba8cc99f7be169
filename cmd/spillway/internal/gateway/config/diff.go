package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
)

// Diff describes the changes from a to b, one line per field: its path, the old value and
// the new value. Elements of lists are identified by their names, if they have names. The
// values of fields with the tag secret, such as headers, are not shown.
func Diff(a, b *Config) []string {
	was, is := make(values), make(values)
	was.flatten("", reflect.ValueOf(a).Elem(), false)
	is.flatten("", reflect.ValueOf(b).Elem(), false)
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

// flatten puts in all values that v holds.
func (all values) flatten(path string, v reflect.Value, secret bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			all[path] = value{text: "given"}
			all.flatten(path, v.Elem(), secret)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			tag := v.Type().Field(i).Tag
			all.flatten(join(path, tag.Get("yaml")), v.Field(i), secret || tag.Get("secret") != "")
		}
	case reflect.Slice:
		for i := range v.Len() {
			all.flatten(path+"["+nameOf(v.Index(i), i)+"]", v.Index(i), secret)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			all.flatten(join(path, key.String()), v.MapIndex(key), secret)
		}
	default:
		if !v.IsZero() {
			all[path] = value{fmt.Sprint(v.Interface()), secret}
		}
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// nameOf returns what the i-th element of a list is called.
func nameOf(v reflect.Value, i int) string {
	if v.Kind() == reflect.Struct {
		for _, field := range []string{"Name", "Address"} {
			if f := v.FieldByName(field); f.IsValid() && f.String() != "" {
				return f.String()
			}
		}
	}
	return strconv.Itoa(i)
}

// Given says which fields of v, a struct of a configuration or a value with a name,
// have a value, and what it is. Values that may be secret are not shown.
func Given(name string, v any) (all []string) {
	found := make(values)
	found.flatten(name, reflect.ValueOf(v), false)
	for _, path := range slices.Sorted(maps.Keys(found)) {
		if v := found[path]; path != name || v.text != "given" {
			all = append(all, path+": "+v.shown())
		}
	}
	return all
}
