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

// apply changes all fields that a setting names, and returns their number. It does not change what a
// setting is of, nor what is expected.
func (f *File) apply(s Setting) (n int, err error) {
	want := words(s.Field)
	strict.Visit("", reflect.ValueOf(f).Elem(), []string{"Name", "To", "Kind"}, func(path string, v reflect.Value, _ reflect.StructTag) {
		at := words(path)
		if err != nil || !settable(v) || slices.Contains([]string{"variants", "quick", "expect"}, at[0]) || !matches(at, want) {
			return
		}
		n++
		if bad := give(v, s.Value); bad != nil {
			err = fmt.Errorf("%s cannot be %q", path, s.Value)
		}
	})
	return n, err
}

// settable reports whether a text can represent v: a single value, or an optional part as a whole.
func settable(v reflect.Value) bool {
	return v.CanSet() && (v.Kind() != reflect.Struct || v.Type() == reflect.TypeFor[sim.Dist]())
}

func give(v reflect.Value, text string) error {
	if v.Kind() == reflect.Pointer {
		fresh := reflect.New(v.Type().Elem())
		v.Set(fresh)
		v = fresh.Elem()
	}
	return strict.Source{Text: []byte(text)}.Decode(v.Addr().Interface(), maxSize, dist)
}

// separators are those of a path.
var separators = strings.NewReplacer("_", "", "[", ".", "]", "")

func words(path string) []string {
	return strings.Split(strings.ToLower(separators.Replace(path)), ".")
}

// matches reports whether a path ends like a name, or begins with a part of it that
// names a group or a service and ends like the rest. An element of a list without
// names must be named by its number.
func matches(path, name []string) bool {
	for _, p := range path {
		if _, err := strconv.Atoi(p); err == nil && !slices.Contains(name, p) {
			return false
		}
	}
	return endsWith(path, name) || len(name) > 1 && endsWith(path, name[1:]) && slices.Contains(path[:len(path)-len(name)+1], name[0])
}

func endsWith(path, end []string) bool {
	return len(path) >= len(end) && slices.Equal(path[len(path)-len(end):], end)
}
