package scenario

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/seed90641741/spillway/cmd/spillway/internal/strict"
	"github.com/seed90641741/spillway/sim"
)

// apply changes all fields that a setting names, and returns their number.
func (f *File) apply(s Setting) (n int, err error) {
	want := words(s.Field)
	walk(reflect.ValueOf(f).Elem(), nil, func(path []string, v reflect.Value) {
		if err != nil || !matches(path, want) {
			return
		}
		n++
		if bad := give(v, s.Value); bad != nil {
			err = fmt.Errorf("%s cannot be %q", strings.Join(path, "."), s.Value)
		}
	})
	return n, err
}

// give gives v the value that a text represents.
func give(v reflect.Value, text string) error {
	if v.Kind() == reflect.Pointer {
		fresh := reflect.New(v.Type().Elem())
		v.Set(fresh)
		v = fresh.Elem()
	}
	return strict.Source{Text: []byte(text)}.Decode(v.Addr().Interface(), maxSize, dist)
}

func words(path string) []string {
	return strings.Split(strings.ToLower(strings.ReplaceAll(path, "_", "")), ".")
}

// matches reports whether a path ends like a name, or begins with a part of it that
// names a group or a service and ends like the rest. An element of a list without
// names must be named by its number.
func matches(path, name []string) bool {
	have := make([]string, len(path))
	for i, p := range path {
		have[i] = strings.ReplaceAll(strings.ToLower(p), "_", "")
	}
	for _, p := range have {
		if _, err := strconv.Atoi(p); err == nil && !slices.Contains(name, p) {
			return false
		}
	}
	return endsWith(have, name) || len(name) > 1 && endsWith(have, name[1:]) && slices.Contains(have[:len(have)-len(name)+1], name[0])
}

func endsWith(path, end []string) bool {
	return len(path) >= len(end) && slices.Equal(path[len(path)-len(end):], end)
}

// walk visits all fields with a single value, and all optional fields, with their paths.
func walk(v reflect.Value, path []string, visit func(path []string, v reflect.Value)) {
	switch v.Kind() {
	case reflect.Pointer:
		visit(path, v) // as a whole
		if !v.IsNil() {
			walk(v.Elem(), path, visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			walk(v.Index(i), append(slices.Clone(path), nameOf(v.Index(i), i)), visit)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[sim.Dist]() {
			visit(path, v)
			return
		}
		for field, value := range v.Fields() {
			name := field.Tag.Get("yaml")
			if len(path) == 0 && slices.Contains([]string{"variants", "quick", "expect"}, name) {
				continue
			}
			walk(value, append(slices.Clone(path), name), visit)
		}
	case reflect.Map:
	default:
		visit(path, v)
	}
}

// nameOf returns the name of the i-th element of a list.
func nameOf(v reflect.Value, i int) string {
	if v.Kind() == reflect.Struct {
		for _, field := range []string{"Name", "To", "Kind"} {
			if f := v.FieldByName(field); f.IsValid() && f.Kind() == reflect.String && f.String() != "" {
				return f.String()
			}
		}
	}
	return strconv.Itoa(i)
}
