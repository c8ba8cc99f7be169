package docdb

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway/spillmongo/mongotest/internal/wire"
)

// Aggregate runs the stages over docs. The last may be $out or $merge, which write
// into database.
func (v View) Aggregate(database string, docs []bson.Raw, stages []bson.Raw) ([]bson.Raw, error) {
	for i, stage := range stages {
		name, arg, err := stageOf(stage)
		if err != nil {
			return nil, err
		}
		if name == "$out" || name == "$merge" {
			if i < len(stages)-1 {
				return nil, fail(40601, "%s can only be the final stage in the pipeline", name)
			}
			return nil, v.output(database, name, arg, docs)
		}
		if docs, err = runStage(name, arg, docs); err != nil {
			return nil, err
		}
	}
	return docs, nil
}

func stageOf(stage bson.Raw) (name string, arg bson.RawValue, err error) {
	n := 0
	for k, v := range wire.Elements(stage) {
		name, arg = k, v
		n++
	}
	if n != 1 {
		return "", arg, fail(40323, "A pipeline stage specification object must contain exactly one field.")
	}
	return name, arg, nil
}

func runStage(name string, arg bson.RawValue, docs []bson.Raw) ([]bson.Raw, error) {
	switch name {
	case "$match":
		return filterStage(arg, docs)
	case "$limit", "$skip":
		n, ok := arg.AsInt64OK()
		if !ok || n < 0 || n == 0 && name == "$limit" {
			return nil, fail(15958, "invalid argument to %s stage", name)
		}
		n = min(n, int64(len(docs)))
		if name == "$skip" {
			return docs[n:], nil
		}
		return docs[:n], nil
	case "$sort":
		spec, _ := arg.DocumentOK()
		docs = slices.Clone(docs)
		return docs, sortBy(docs, spec)
	case "$count":
		field, ok := arg.StringValueOK()
		if !ok || field == "" {
			return nil, fail(40156, "the count field must be a non-empty string")
		}
		if len(docs) == 0 {
			return nil, nil
		}
		doc, err := bson.Marshal(bson.D{{Key: field, Value: int32(len(docs))}})
		return []bson.Raw{doc}, err
	case "$group":
		return group(arg, docs)
	case "$project":
		spec, _ := arg.DocumentOK()
		return Project(docs, spec)
	case "$set", "$addFields", "$unset", "$replaceWith", "$replaceRoot":
		return eachDocument(name, arg, docs)
	case "$changeStreamSplitLargeEvent":
		return docs, nil
	default:
		return nil, fail(UnknownPipelineStage, "Unrecognized pipeline stage name: '%s'", name)
	}
}

func filterStage(arg bson.RawValue, docs []bson.Raw) ([]bson.Raw, error) {
	filter, ok := arg.DocumentOK()
	if !ok {
		return nil, fail(15959, "the match filter must be an expression in an object")
	}
	return Filter(docs, filter)
}

// Filter returns the docs that match.
func Filter(docs []bson.Raw, filter bson.Raw) (out []bson.Raw, err error) {
	if _, err := Match(filter, nil); err != nil { // even if there is no document
		return nil, err
	}
	for _, d := range docs {
		m, err := Match(filter, d)
		if err != nil {
			return nil, err
		}
		if m {
			out = append(out, d)
		}
	}
	return out, nil
}

// runUpdate is an update by a pipeline.
func runUpdate(doc bson.Raw, stages []bson.RawValue) (bson.Raw, error) {
	docs := []bson.Raw{doc}
	for _, s := range stages {
		stage, _ := s.DocumentOK()
		name, arg, err := stageOf(stage)
		if err != nil {
			return nil, err
		}
		if docs, err = eachDocument(name, arg, docs); err != nil {
			return nil, err
		}
	}
	return docs[0], nil
}

// eachDocument runs a stage that turns each document into another one.
func eachDocument(name string, arg bson.RawValue, docs []bson.Raw) ([]bson.Raw, error) {
	out := make([]bson.Raw, len(docs))
	for i, d := range docs {
		var err error
		if out[i], err = mapDocument(name, arg, d); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func mapDocument(name string, arg bson.RawValue, doc bson.Raw) (bson.Raw, error) {
	switch name {
	case "$set", "$addFields":
		spec, _ := arg.DocumentOK()
		return setFields(doc, spec)
	case "$unset":
		fields := []bson.RawValue{arg}
		if arg.Type == bson.TypeArray {
			fields = items(arg)
		}
		return unsetFields(doc, fields)
	case "$replaceRoot":
		spec, _ := arg.DocumentOK()
		arg = spec.Lookup("newRoot")
		fallthrough
	case "$replaceWith":
		v, err := evaluate(arg, doc)
		root, ok := v.DocumentOK()
		if err == nil && !ok {
			err = fail(40228, "'replacement document' must evaluate to an object")
		}
		return slices.Clone(root), err // what is stored must not share its bytes with a command
	default:
		return nil, fail(UnknownPipelineStage, "Unrecognized pipeline stage name: '%s'", name)
	}
}

func setFields(doc, spec bson.Raw) (bson.Raw, error) {
	var d bson.D
	if err := bson.Unmarshal(doc, &d); err != nil {
		return nil, err
	}
	for path, expr := range wire.Elements(spec) {
		v, err := evaluate(expr, doc)
		if err != nil {
			return nil, err
		}
		if err := modify(&d, "$set", path, v, true); err != nil {
			return nil, err
		}
	}
	return bson.Marshal(d)
}

func unsetFields(doc bson.Raw, fields []bson.RawValue) (bson.Raw, error) {
	var d bson.D
	if err := bson.Unmarshal(doc, &d); err != nil {
		return nil, err
	}
	for _, f := range fields {
		path, ok := f.StringValueOK()
		if !ok {
			return nil, fail(31002, "$unset specification must be a string or an array of strings")
		}
		if err := modify(&d, "$unset", path, f, false); err != nil {
			return nil, err
		}
	}
	return bson.Marshal(d)
}

// evaluate is the value of an expression: a constant, or the path of a field.
func evaluate(expr bson.RawValue, doc bson.Raw) (bson.RawValue, error) {
	if s, ok := expr.StringValueOK(); ok && strings.HasPrefix(s, "$") {
		if strings.HasPrefix(s, "$$") {
			return expr, fail(UnsupportedExpression, "variables are not supported: %s", s)
		}
		return sortKey(doc, s[1:]), nil
	}
	if d, ok := expr.DocumentOK(); ok && isOperators(d) {
		if lit := d.Lookup("$literal"); !lit.IsZero() {
			return lit, nil
		}
		return expr, fail(UnsupportedExpression, "expressions other than constants and field paths are not supported")
	}
	return expr, nil
}

// output replaces a collection by docs, for $out, or merges them into it.
func (v View) output(database, op string, arg bson.RawValue, docs []bson.Raw) error {
	ns, err := target(database, arg)
	if err != nil {
		return err
	}
	v.db.mu.Lock()
	defer v.db.mu.Unlock()
	if op == "$out" {
		_, keys, err := v.find(ns, nil, -1)
		if err != nil {
			return err
		}
		for _, k := range keys {
			if err := v.store(ns, k, nil); err != nil {
				return err
			}
		}
		if _, err := v.db.collection(ns); err != nil {
			return err
		}
	}
	for _, d := range docs {
		id := d.Lookup("_id")
		if id.IsZero() {
			_, err = v.insert(ns, d)
		} else {
			err = v.store(ns, key(id), d)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// target is the namespace that $out or $merge names.
func target(database string, arg bson.RawValue) (string, error) {
	if doc, ok := arg.DocumentOK(); ok {
		if into := doc.Lookup("into"); !into.IsZero() {
			return target(database, into)
		}
		if db, ok := doc.Lookup("db").StringValueOK(); ok {
			database = db
		}
		arg = doc.Lookup("coll")
	}
	coll, ok := arg.StringValueOK()
	if !ok {
		return "", fail(16990, "the output of an aggregation must be a string or an object")
	}
	return database + "." + coll, checkNamespace(database + "." + coll)
}
