package strict

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// A Visitor is called with a pointer, a struct, or a single value, with its path in the file and the tags
// of its field.
type Visitor func(path string, v reflect.Value, tag reflect.StructTag)

// Visit calls f with all that v holds. An element of a list is called what the first of some fields says
// that is not empty, or by its number.
func Visit(path string, v reflect.Value, names []string, f Visitor) { f.visit(path, v, "", names) }

func (f Visitor) visit(path string, v reflect.Value, tag reflect.StructTag, names []string) {
	switch v.Kind() {
	case reflect.Pointer:
		f(path, v, tag)
		if !v.IsNil() {
			f.visit(path, v.Elem(), tag, names)
		}
	case reflect.Struct:
		f(path, v, tag)
		for field, value := range v.Fields() {
			f.visit(Join(path, field.Tag.Get("yaml")), value, field.Tag, names)
		}
	case reflect.Slice:
		for i := range v.Len() {
			f.visit(path+"["+nameOf(v.Index(i), i, names)+"]", v.Index(i), tag, names)
		}
	case reflect.Map:
		for _, key := range SortedKeys(v) {
			f.visit(Join(path, key.String()), v.MapIndex(key), tag, names)
		}
	default:
		f(path, v, tag)
	}
}

// SortedKeys returns the keys of a map with names.
func SortedKeys(v reflect.Value) []reflect.Value {
	return slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
}

// nameOf returns what the i-th element of a list is called.
func nameOf(v reflect.Value, i int, names []string) string {
	if v.Kind() == reflect.Struct {
		for _, name := range names {
			if f := v.FieldByName(name); f.Kind() == reflect.String && f.String() != "" {
				return f.String()
			}
		}
	}
	return strconv.Itoa(i)
}
