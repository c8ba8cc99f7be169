package config

import (
	"bytes"
	"fmt"
	"reflect"

	"go.yaml.in/yaml/v3"

	"github.com/seed90641741/spillway/cmd/spillway/internal/strict"
)

// Format returns c as a configuration file: all fields that are set, in the order of the
// schema.
func Format(c *Config) ([]byte, error) {
	var text bytes.Buffer
	e := yaml.NewEncoder(&text)
	e.SetIndent(2)
	if err := e.Encode(given(reflect.ValueOf(c).Elem())); err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	return text.Bytes(), nil
}

// given returns v without its zero fields.
func given(v reflect.Value) *yaml.Node {
	switch v.Kind() {
	case reflect.Pointer:
		return given(v.Elem())
	case reflect.Struct:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for field, value := range v.Fields() {
			if !value.IsZero() {
				n.Content = append(n.Content, scalar(field.Tag.Get("yaml")), given(value))
			}
		}
		return n
	case reflect.Slice:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			n.Content = append(n.Content, given(v.Index(i)))
		}
		return n
	case reflect.Map:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, k := range strict.SortedKeys(v) {
			n.Content = append(n.Content, scalar(k.String()), given(v.MapIndex(k)))
		}
		return n
	default:
		return scalar(v.Interface())
	}
}

// scalar returns one value, in quotes where it needs them.
func scalar(v any) *yaml.Node {
	n := new(yaml.Node)
	_ = n.Encode(v) // which is a number, a bool, a length of time or a text
	return n
}
