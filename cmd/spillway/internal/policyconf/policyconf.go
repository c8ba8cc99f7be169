// Package policyconf describes the settings of the policies in files. The configuration
// of the proxy and scenarios have the same structs, so a setting has one name, one default
// and one range.
//
// The tag sets names the fields of the library that a setting sets: throttle.Config.K.
// Everything else is derived from it: the values that [Fill] gives to the library, the path
// of an error in the file ([Path]), and the default and the allowed values in the JSON
// schema, which are taken from the documentation of the library. A zero setting leaves the
// field zero, so the library sets the defaults and checks the values.
//
// A setting with the tag only:"proxy" is not for scenarios. The tag default replaces what
// the library says, where the program has its own default.
package policyconf

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/strict"
)

// Mode is the mode of a gate: off, observe or enforce. Empty means the mode of the file.
type Mode string

// Or returns the mode, and def where it is empty or unknown.
func (m Mode) Or(def spillway.Mode) spillway.Mode {
	_ = def.UnmarshalText([]byte(m)) // an error leaves it as it is
	return def
}

// Check returns an error if the mode is unknown.
func (m Mode) Check() error {
	if m != "" && new(spillway.Mode).UnmarshalText([]byte(m)) != nil {
		return fmt.Errorf("is %.32q, must be off, observe or enforce", string(m))
	}
	return nil
}

// Classes has a number for each criticality.
type Classes struct {
	Sheddable     float64 `yaml:"sheddable"`
	SheddablePlus float64 `yaml:"sheddable_plus"`
	Critical      float64 `yaml:"critical"`
	CriticalPlus  float64 `yaml:"critical_plus"`
}

// Array returns the numbers by [spillway.Criticality.Index].
func (c Classes) Array() [spillway.Criticalities]float64 {
	return [...]float64{c.Sheddable, c.SheddablePlus, c.Critical, c.CriticalPlus}
}

// Fill returns a Config of the library with the settings of a section, a struct of this
// package. Settings of other Configs are left out.
func Fill[T any](section any) (to T) {
	fill(reflect.ValueOf(&to).Elem(), reflect.ValueOf(section))
	return to
}

func fill(to, from reflect.Value) {
	Settings(from, func(s Setting) {
		if target, ok := s.target(to.Type()); ok && !s.Value.IsZero() {
			convert(fieldAt(to, target), s.Value)
		}
	})
}

// fieldAt returns the field of a struct at a path such as Targets.CPU.
func fieldAt(v reflect.Value, path string) reflect.Value {
	for name := range strings.SplitSeq(path, ".") {
		v = v.FieldByName(name)
	}
	return v
}

// convert sets a field of the library to a value of a file.
func convert(to, from reflect.Value) {
	switch {
	case from.Type().ConvertibleTo(to.Type()) && from.Kind() != reflect.Struct:
		to.Set(from.Convert(to.Type()))
	case from.Type() == reflect.TypeFor[Classes]():
		c, _ := reflect.TypeAssert[Classes](from)
		to.Set(reflect.ValueOf(c.Array()).Convert(to.Type()))
	case from.Kind() == reflect.Struct:
		fill(to, from)
	case from.Kind() == reflect.Map:
		to.Set(reflect.MakeMapWithSize(to.Type(), from.Len()))
		for key, value := range from.Seq2() {
			v := reflect.New(to.Type().Elem()).Elem()
			convert(v, value)
			to.SetMapIndex(key, v)
		}
	case from.Type() == reflect.TypeFor[Networks]():
		n, _ := reflect.TypeAssert[Networks](from)
		to.Set(reflect.ValueOf(n.Prefixes()))
	case from.Type() == reflect.TypeFor[Formula]():
		if f, err := parseCombination(from.String()); err == nil && f != nil {
			to.Set(reflect.ValueOf(f))
		}
	default: // a test fails for a setting without a conversion, as its field stays zero
	}
}

// A Setting is a field of a section.
type Setting struct {
	Name  string // in files, below the section: targets.cpu
	Field reflect.StructField
	Value reflect.Value
}

// Targets returns the fields of the library that the setting sets, such as
// throttle.Config.K.
func (s *Setting) Targets() []string { return strings.Fields(s.Field.Tag.Get("sets")) }

// ForProxy returns the name of a setting that is given, but is not for scenarios. It is empty
// if absent.
func ForProxy(section any) (name string) {
	Settings(reflect.ValueOf(section), func(s Setting) {
		if s.Field.Tag.Get("only") != "" && !s.Value.IsZero() {
			name = s.Name
		}
	})
	return name
}

// target returns the field of a Config that the setting sets.
func (s *Setting) target(of reflect.Type) (field string, ok bool) {
	for _, target := range s.Targets() {
		if field, ok = strings.CutPrefix(target, of.String()+"."); ok {
			return field, true
		}
	}
	return "", false
}

// Settings calls visit with each setting of a section, and of the sections in it.
func Settings(section reflect.Value, visit func(Setting)) { settings("", section, visit) }

func settings(at string, v reflect.Value, visit func(Setting)) {
	for field, value := range v.Fields() {
		s := Setting{at + field.Tag.Get("yaml"), field, value}
		if value.Kind() == reflect.Struct && field.Tag.Get("sets") == "" {
			settings(s.Name+".", value, visit)
			continue
		}
		visit(s)
	}
}

// Path returns the name in a file, below the section, of the field of the library's Config T
// that an error names: MaxInFlightByKey["watch"] of a concurrency.Config is max_in_flight_by_key.watch.
func Path[T any](section any, field string) string {
	name := strict.Path(field)
	Settings(reflect.ValueOf(section), func(s Setting) {
		target, ok := s.target(reflect.TypeFor[T]())
		rest, within := strings.CutPrefix(field, target)
		if ok && within && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			last := target[strings.LastIndex(target, ".")+1:]
			name = s.Name + strings.TrimPrefix(strict.Path(last+rest), strict.Path(last))
		}
	})
	return name
}

// Networks are IP networks as text, such as 10.0.0.0/8.
type Networks []string

// Prefixes returns the networks. It leaves out what is not a network.
func (n Networks) Prefixes() (all []netip.Prefix) {
	for _, text := range n {
		if network, err := netip.ParsePrefix(text); err == nil {
			all = append(all, network)
		}
	}
	return all
}
