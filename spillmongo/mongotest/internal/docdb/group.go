package docdb

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway/spillmongo/mongotest/internal/wire"
)

// group runs the $group stage with the accumulators $sum, $min, $max, $first,
// $last and $push.
func group(arg bson.RawValue, docs []bson.Raw) ([]bson.Raw, error) {
	spec, _ := arg.DocumentOK()
	if spec.Lookup("_id").IsZero() {
		return nil, fail(15955, "a group specification must include an _id")
	}
	groups := map[string]bson.D{}
	var order []string
	for _, doc := range docs {
		id, err := evaluate(spec.Lookup("_id"), doc)
		if err != nil {
			return nil, err
		}
		k := key(id)
		g, ok := groups[k]
		if !ok {
			g = bson.D{{Key: "_id", Value: id}}
			order = append(order, k)
		}
		if groups[k], err = accumulate(g, spec, doc); err != nil {
			return nil, err
		}
	}
	var out []bson.Raw
	for _, k := range order {
		doc, err := bson.Marshal(groups[k])
		if err != nil {
			return nil, err
		}
		out = append(out, doc)
	}
	return out, nil
}

// accumulate adds doc to the group g.
func accumulate(g bson.D, spec, doc bson.Raw) (bson.D, error) {
	for field, acc := range wire.Elements(spec) {
		if field == "_id" {
			continue
		}
		accumulator, _ := acc.DocumentOK()
		op, expr, err := stageOf(accumulator)
		if err != nil {
			return nil, err
		}
		v, err := evaluate(expr, doc)
		if err != nil {
			return nil, err
		}
		edit, err := accumulatorOf(op, v)
		if err != nil {
			return nil, err
		}
		out, err := changeDocument(g, []string{field}, edit)
		if err != nil {
			return nil, err
		}
		g = out.(bson.D)
	}
	return g, nil
}

func accumulatorOf(op string, v bson.RawValue) (func(any) (any, error), error) {
	switch op {
	case "$sum":
		if !v.IsNumber() {
			v = bson.RawValue{Type: bson.TypeInt32, Value: make([]byte, 4)}
		}
		return editor("$inc", v)
	case "$min", "$max", "$push":
		return editor(op, v)
	case "$first":
		return func(old any) (any, error) {
			if old != nil {
				return old, nil
			}
			return v, nil
		}, nil
	case "$last":
		return editor("$set", v)
	default:
		return nil, fail(UnknownAccumulator, "unknown group operator '%s'", op)
	}
}

// Project returns docs with the fields that spec includes, or without the fields that
// it excludes.
func Project(docs []bson.Raw, spec bson.Raw) ([]bson.Raw, error) {
	include, exclude, id := false, false, true
	for path, v := range wire.Elements(spec) {
		switch {
		case strings.Contains(path, "."):
			return nil, fail(UnsupportedExpression, "projections of paths are not supported")
		case !v.IsNumber() && v.Type != bson.TypeBoolean:
			return nil, fail(UnsupportedExpression, "projections other than inclusion and exclusion are not supported")
		case path == "_id":
			id = truth(v)
		case truth(v):
			include = true
		default:
			exclude = true
		}
	}
	if include && exclude {
		return nil, fail(31254, "Cannot do exclusion in inclusion projection")
	}
	if !include && !exclude && id {
		if spec.Lookup("_id").IsZero() {
			return docs, nil
		}
		include = true
	}
	out := make([]bson.Raw, len(docs))
	for i, d := range docs {
		var err error
		if out[i], err = bson.Marshal(projectDocument(d, spec, include, id)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func projectDocument(doc, spec bson.Raw, include, id bool) bson.D {
	out := bson.D{}
	for k, v := range wire.Elements(doc) {
		if k == "_id" {
			if id {
				out = append(out, bson.E{Key: k, Value: v})
			}
			continue
		}
		named := false
		for path := range wire.Elements(spec) {
			named = named || path == k
		}
		if named == include {
			out = append(out, bson.E{Key: k, Value: v})
		}
	}
	return out
}

// Distinct returns the values of the field at path, each once, in the order in which
// they come.
func Distinct(docs []bson.Raw, path string) []bson.RawValue {
	out, seen := []bson.RawValue{}, map[string]bool{}
	add := func(v bson.RawValue) {
		if k := key(v); !seen[k] {
			seen[k] = true
			out = append(out, v)
		}
	}
	for _, d := range docs {
		for _, v := range reach(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: d}, path, nil) {
			if v.Type != bson.TypeArray {
				add(v)
				continue
			}
			for _, item := range items(v) {
				add(item)
			}
		}
	}
	return out
}
