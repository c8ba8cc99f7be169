package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/goccy/go-yaml"
)

// Format returns c as a file that says the same: all that is given, in the order of
// the schema.
func Format(c *Config) ([]byte, error) {
	tree := treeOf(reflect.ValueOf(c).Elem())
	if tree == nil {
		return []byte("{}\n"), nil
	}
	text, err := yaml.MarshalWithOptions(tree, yaml.IndentSequence(true))
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	return text, nil
}

// treeOf returns what is given of v, nil if nothing is.
func treeOf(v reflect.Value) any {
	if v.IsZero() {
		return nil
	}
	if d, ok := reflect.TypeAssert[time.Duration](v); ok {
		return d.String()
	}
	switch v.Kind() {
	case reflect.Pointer:
		if tree := treeOf(v.Elem()); tree != nil {
			return tree
		}
		return yaml.MapSlice{} // it is there, and has nothing but defaults
	case reflect.Struct:
		return fieldsOf(v)
	case reflect.Slice:
		all := make([]any, 0, v.Len())
		for i := range v.Len() {
			all = append(all, orEmpty(v.Index(i)))
		}
		return all
	case reflect.Map:
		all := make(yaml.MapSlice, 0, v.Len())
		keys := make(map[string]reflect.Value, v.Len())
		for _, k := range v.MapKeys() {
			keys[k.String()] = v.MapIndex(k)
		}
		for _, k := range slices.Sorted(maps.Keys(keys)) {
			all = append(all, yaml.MapItem{Key: k, Value: orEmpty(keys[k])})
		}
		return all
	case reflect.String:
		return v.String()
	default:
		return v.Interface()
	}
}

// orEmpty returns what is given of an element, which is there in any case.
func orEmpty(v reflect.Value) any {
	if tree := treeOf(v); tree != nil {
		return tree
	}
	if v.Kind() == reflect.Struct {
		return yaml.MapSlice{}
	}
	return v.Interface()
}

func fieldsOf(v reflect.Value) yaml.MapSlice {
	var all yaml.MapSlice
	for i := range v.NumField() {
		if tree := treeOf(v.Field(i)); tree != nil {
			all = append(all, yaml.MapItem{Key: v.Type().Field(i).Tag.Get("yaml"), Value: tree})
		}
	}
	return all
}
