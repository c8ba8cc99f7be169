package strict

import (
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxDepth is how deep values may be nested.
const maxDepth = 100

// A text may have one node for so many of the bytes that it may hold. Aliases repeat what
// they repeat, so a short text can have any number of nodes.
const bytesPerNode = 16

// A decoder reads nodes into values.
type decoder struct {
	values map[reflect.Type]Value
	root   reflect.Type
	nodes  int // that may still be read
	depth  int
	errs   Errors
}

func (d *decoder) failf(n *yaml.Node, field, format string, args ...any) {
	d.errs.Add(&Error{Line: n.Line, Field: field, Problem: fmt.Sprintf(format, args...)})
}

// resolve follows aliases. It returns nil for a node that cannot be read: an empty one, one
// with a custom tag, or one too many.
func (d *decoder) resolve(n *yaml.Node, field string) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	d.nodes--
	switch {
	case d.depth > maxDepth:
		d.failf(n, "", "is nested more than %d deep", maxDepth)
		d.nodes = 0 // one error is enough
	case d.nodes == -1:
		d.failf(n, "", "has too many values, including repetitions by aliases")
	case d.nodes < 0:
	case !strings.HasPrefix(n.ShortTag(), "!!"):
		d.failf(n, field, "has the tag %.40s, must have none", n.Tag)
	case n.ShortTag() != "!!null":
		return n
	}
	return nil
}

func (d *decoder) up() { d.depth-- }

func (d *decoder) decode(n *yaml.Node, field string, v reflect.Value) {
	d.depth++
	defer d.up()
	if isEmpty(n) && v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.Struct {
		d.failf(n, field, "is empty, must be left out, or have fields; {} has the default of each")
		return
	}
	n = d.resolve(n, field)
	if n == nil {
		return
	}
	if value, ok := d.values[v.Type()]; ok {
		d.text(n, field, v, value.parse)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		fresh := reflect.New(v.Type().Elem())
		d.decode(n, field, fresh.Elem())
		v.Set(fresh)
	case reflect.Struct:
		d.object(n, field, v)
	case reflect.Map:
		d.mapping(n, field, v)
	case reflect.Slice:
		d.list(n, field, v)
	case reflect.Interface:
		d.any(n, field, v)
	case reflect.String:
		d.text(n, field, v, func(s string) (reflect.Value, error) { return reflect.ValueOf(s).Convert(v.Type()), nil })
	default:
		d.failf(n, field, "cannot be read into a %v", v.Type())
	}
}

// isEmpty reports whether nothing is written where a value is to be, not even null. A section that has an
// effect by being there would be taken for one that is not.
func isEmpty(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Value == "" && n.ShortTag() == "!!null"
}

// kinds are the names of what a node can be.
var kinds = map[yaml.Kind]string{yaml.ScalarNode: "a single value", yaml.SequenceNode: "a list", yaml.MappingNode: "a mapping"}

func (d *decoder) is(n *yaml.Node, field string, kind yaml.Kind) bool {
	if n.Kind != kind {
		d.failf(n, field, "is %s, must be %s", kinds[n.Kind], kinds[kind])
	}
	return n.Kind == kind
}

func (d *decoder) text(n *yaml.Node, field string, v reflect.Value, parse func(string) (reflect.Value, error)) {
	if !d.is(n, field, yaml.ScalarNode) {
		return
	}
	value, err := parse(n.Value)
	if err != nil {
		d.failf(n, field, "is %.64q: %v", n.Value, err)
		return
	}
	v.Set(value)
}

func (d *decoder) object(n *yaml.Node, field string, v reflect.Value) {
	names := make(map[string][]int, v.NumField())
	for _, f := range reflect.VisibleFields(v.Type()) { // and those of embedded structs
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if !f.Anonymous {
			names[name] = f.Index
		}
	}
	d.pairs(n, field, func(key, value *yaml.Node, at string) {
		if i, ok := names[key.Value]; ok {
			d.decode(value, at, v.FieldByIndex(i))
			return
		}
		d.failf(key, at, "is no field here%s", suggest(key.Value, d.root))
	})
}

func (d *decoder) mapping(n *yaml.Node, field string, v reflect.Value) {
	all := reflect.MakeMap(v.Type())
	d.pairs(n, field, func(key, value *yaml.Node, at string) {
		element := reflect.New(v.Type().Elem()).Elem()
		d.decode(value, at, element)
		all.SetMapIndex(reflect.ValueOf(key.Value).Convert(v.Type().Key()), element)
	})
	v.Set(all)
}

func (d *decoder) list(n *yaml.Node, field string, v reflect.Value) {
	if !d.is(n, field, yaml.SequenceNode) {
		return
	}
	all := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, element := range n.Content {
		d.decode(element, fmt.Sprintf("%s[%d]", field, i), all.Index(i))
	}
	v.Set(all)
}

// any reads a node as a map[string]any, a []any, or one value.
func (d *decoder) any(n *yaml.Node, field string, v reflect.Value) {
	switch n.Kind {
	case yaml.MappingNode:
		all := reflect.New(reflect.TypeFor[map[string]any]()).Elem()
		d.mapping(n, field, all)
		v.Set(all)
	case yaml.SequenceNode:
		all := reflect.New(reflect.TypeFor[[]any]()).Elem()
		d.list(n, field, all)
		v.Set(all)
	default:
		v.Set(reflect.ValueOf(scalar(n)))
	}
}

// pairs calls f for the keys and values of a mapping, including what it merges in with
// the key <<, whose own ones count for more.
func (d *decoder) pairs(n *yaml.Node, field string, f func(key, value *yaml.Node, at string)) {
	if !d.is(n, field, yaml.MappingNode) {
		return
	}
	own := make(map[string]bool, len(n.Content)/2)
	var merged []*yaml.Node
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch at := Join(field, key.Value); {
		case key.Kind != yaml.ScalarNode:
			d.failf(key, field, "has a key that is %s, must be a single value", kinds[key.Kind])
		case key.ShortTag() == "!!merge":
			merged = append(merged, value)
		case own[key.Value]:
			d.failf(key, at, "is given twice")
		default:
			own[key.Value] = true
			f(key, value, at)
		}
	}
	for _, m := range merged {
		d.merge(m, field, own, f)
	}
}

// merge yields what is merged into a mapping that has its own keys: a mapping, or several.
func (d *decoder) merge(m *yaml.Node, field string, own map[string]bool, f func(key, value *yaml.Node, at string)) {
	d.depth++
	defer d.up()
	m = d.resolve(m, field)
	if m == nil {
		return
	}
	if m.Kind == yaml.SequenceNode {
		for _, each := range m.Content {
			d.merge(each, field, own, f)
		}
		return
	}
	d.pairs(m, field, func(key, value *yaml.Node, at string) {
		if !own[key.Value] {
			own[key.Value] = true
			f(key, value, at)
		}
	})
}

// Join returns the path of a field of another one.
func Join(field, key string) string {
	if field == "" {
		return key
	}
	return field + "." + key
}

// scalar returns a number, a bool or a text. A number that a float64 has no room for, and a
// date, are texts.
func scalar(n *yaml.Node) any {
	var v any
	switch n.ShortTag() {
	case "!!int", "!!float", "!!bool":
		if n.Decode(&v) == nil {
			return v
		}
	}
	return n.Value
}
