package config

import (
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/strict"
)

// A configuration is read and written by its fields in several ways. What follows from a field is in
// its tags, next to its name in the file: "zero" has what a zero field means, "allowed" the
// range of a number, "limiter" marks the rate of a log, "file" the name of another file, and "secret" a value that
// is not shown.

// visit calls f with each value in v. Elements of lists are identified by their names, if they have
// names.
func visit(path string, v reflect.Value, f strict.Visitor) {
	strict.Visit(path, v, []string{"Name", "Address"}, f)
}

// Clone returns a copy of a part of a configuration that shares nothing with it.
func Clone[T any](part *T) *T {
	copied, _ := reflect.TypeAssert[*T](clone(reflect.ValueOf(part)))
	return copied
}

func clone(v reflect.Value) reflect.Value {
	to := reflect.New(v.Type()).Elem()
	to.Set(v)
	if !v.IsZero() {
		switch v.Kind() {
		case reflect.Pointer:
			to.Set(reflect.New(v.Type().Elem()))
			to.Elem().Set(clone(v.Elem()))
		case reflect.Struct:
			for i := range v.NumField() {
				to.Field(i).Set(clone(v.Field(i)))
			}
		case reflect.Slice:
			to.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			for i := range v.Len() {
				to.Index(i).Set(clone(v.Index(i)))
			}
		case reflect.Map:
			to.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
			for key, value := range v.Seq2() {
				to.SetMapIndex(key, clone(value))
			}
		default: // a single value
		}
	}
	return to
}

// Field returns the field of a part of a configuration at a path of the file, such as health.interval.
// Parts on the way that are not given are added.
func Field(part any, path string) reflect.Value {
	v := reflect.ValueOf(part)
	for name := range strings.SplitSeq(path, ".") {
		for v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		for field, value := range v.Fields() {
			if field.Tag.Get("yaml") == name {
				v = value
				break
			}
		}
	}
	return v
}

// Files returns the names of all other files that c names.
func (c *Config) Files() []string { return files(c) }

// files returns the names of the files that a configuration names.
func files[T any](c *T) (names []string) {
	visit("", reflect.ValueOf(c).Elem(), func(_ string, v reflect.Value, tag reflect.StructTag) {
		if tag.Get("file") != "" && !v.IsZero() {
			names = append(names, v.String())
		}
	})
	return names
}

// defaulted returns a copy of a part of a configuration, whose zero fields have the values that they
// stand for.
func defaulted[T any](part *T) *T {
	d := Clone(part)
	visit("", reflect.ValueOf(d), func(_ string, v reflect.Value, tag reflect.StructTag) {
		if zero, ok := tag.Lookup("zero"); ok && v.IsZero() {
			v.Set(parsed(zero, v.Type()))
		}
	})
	return d
}

// parsed returns the value of a tag; a test reads all of them.
func parsed(text string, t reflect.Type) reflect.Value {
	if t == reflect.TypeFor[time.Duration]() {
		d, _ := time.ParseDuration(text)
		return reflect.ValueOf(d)
	}
	if t.Kind() == reflect.String {
		return reflect.ValueOf(text).Convert(t)
	}
	f, _ := strconv.ParseFloat(text, 64)
	return reflect.ValueOf(f).Convert(t)
}

// ranges are the forms of the tag "allowed".
var ranges = regexp.MustCompile(`^(above |at least )?(\d\S*)?(?: or more)?(?: to | and at most |at most )?(\d\S*)?$`)

// inRange reports whether a number, or a length of time, is in a range.
func inRange(v reflect.Value, allowed string) bool {
	number := func(v reflect.Value) float64 { return v.Convert(reflect.TypeFor[float64]()).Float() }
	form := ranges.FindStringSubmatch(strings.Replace(allowed, "not negative", "at least 0", 1))
	least, most := math.Inf(-1), math.Inf(1)
	if form[2] != "" {
		least = number(parsed(form[2], v.Type()))
	}
	if form[3] != "" {
		most = number(parsed(form[3], v.Type()))
	}
	is := number(v)
	return is >= least && is <= most && (form[1] != "above " || is > least)
}
