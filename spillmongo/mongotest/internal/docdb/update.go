package docdb

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway/spillmongo/mongotest/internal/wire"
)

// apply returns doc as change makes it: a replacement, a document of operators, or a
// pipeline. insert says that doc is the start of one that is to be inserted.
func apply(doc bson.Raw, change bson.RawValue, insert bool) (bson.Raw, error) {
	out, err := transform(doc, change, insert)
	if err != nil {
		return nil, err
	}
	if len(out) > wire.MaxDocumentSize {
		return nil, fail(BSONObjectTooLarge, "the document would have %d bytes", len(out))
	}
	if _, _, err := wire.Document(out); err != nil {
		return nil, fail(BadValue, "the document would be nested too deeply")
	}
	return out, nil
}

func transform(doc bson.Raw, change bson.RawValue, insert bool) (bson.Raw, error) {
	switch change.Type {
	case bson.TypeEmbeddedDocument:
		if isOperators(change.Value) {
			return operate(doc, change.Value, insert)
		}
		return replace(doc, change.Value)
	case bson.TypeArray:
		return runUpdate(doc, items(change))
	default:
		return nil, fail(FailedToParse, "Update argument must be either an object or an array")
	}
}

// replace returns change with the _id of doc.
func replace(doc, change bson.Raw) (bson.Raw, error) {
	id := doc.Lookup("_id")
	if given := change.Lookup("_id"); !given.IsZero() {
		if !id.IsZero() && compare(id, given) != 0 {
			return nil, fail(ImmutableField, "the (immutable) field '_id' was found to have been altered")
		}
		id = given
	}
	out := bson.D{}
	if !id.IsZero() {
		out = append(out, bson.E{Key: "_id", Value: id})
	}
	for k, v := range wire.Elements(change) {
		if strings.HasPrefix(k, "$") {
			return nil, fail(FailedToParse, "the replacement document must not contain %s", k)
		}
		if k != "_id" {
			out = append(out, bson.E{Key: k, Value: v})
		}
	}
	return bson.Marshal(out)
}

func operate(doc, change bson.Raw, insert bool) (bson.Raw, error) {
	var d bson.D
	if err := bson.Unmarshal(doc, &d); err != nil {
		return nil, fail(FailedToParse, "%v", err)
	}
	for op, fields := range wire.Elements(change) {
		set, ok := fields.DocumentOK()
		if !ok {
			return nil, fail(FailedToParse, "Modifiers operate on fields but we found another type instead: %s", op)
		}
		for path, arg := range wire.Elements(set) {
			if path == "_id" && op != "$setOnInsert" {
				if op == "$set" && compare(doc.Lookup("_id"), arg) == 0 {
					continue
				}
				if !insert {
					return nil, fail(ImmutableField, "Performing an update on the path '_id' would modify the immutable field '_id'")
				}
			}
			if err := modify(&d, op, path, arg, insert); err != nil {
				return nil, err
			}
		}
	}
	return bson.Marshal(d)
}

// modify applies one operator to one path of d.
func modify(d *bson.D, op, path string, arg bson.RawValue, insert bool) error {
	if strings.Contains(path, "$") {
		return fail(BadValue, "positional paths are not supported: %s", path)
	}
	steps := strings.Split(path, ".")
	if len(steps) > wire.MaxDepth {
		return fail(BadValue, "a path of %d steps", len(steps))
	}
	if op == "$setOnInsert" && !insert {
		return nil
	}
	if op == "$rename" {
		return rename(d, steps, arg)
	}
	edit, err := editor(op, arg)
	if err != nil {
		return err
	}
	out, err := change(any(*d), steps, edit)
	if err != nil {
		return err
	}
	*d = out.(bson.D)
	return nil
}

// drop, as a value, says that there must be none.
type drop struct{}

// editor returns what op makes of a value, which is nil if absent.
func editor(op string, arg bson.RawValue) (func(any) (any, error), error) {
	switch op {
	case "$set", "$setOnInsert":
		return func(any) (any, error) { return arg, nil }, nil
	case "$unset":
		return func(any) (any, error) { return drop{}, nil }, nil
	case "$inc", "$mul":
		if !arg.IsNumber() || arg.Type == bson.TypeDecimal128 {
			return nil, fail(TypeMismatch, "Cannot %s with non-numeric argument", op)
		}
		return func(old any) (any, error) { return calculate(op, old, arg) }, nil
	case "$min", "$max":
		return func(old any) (any, error) {
			if was, ok := value(old); ok && (compare(arg, was) < 0) != (op == "$min") {
				return old, nil
			}
			return arg, nil
		}, nil
	case "$currentDate":
		return func(any) (any, error) { return bson.NewDateTimeFromTime(time.Now()), nil }, nil
	case "$push", "$addToSet", "$pull":
		return func(old any) (any, error) { return editArray(op, old, arg) }, nil
	default:
		return nil, fail(FailedToParse, "Unknown modifier: %s", op)
	}
}

// value returns a Go value as BSON; false if absent.
func value(v any) (bson.RawValue, bool) {
	if v == nil {
		return bson.RawValue{}, false
	}
	if raw, ok := v.(bson.RawValue); ok {
		return raw, true
	}
	t, data, err := bson.MarshalValue(v)
	return bson.RawValue{Type: t, Value: data}, err == nil
}

func calculate(op string, old any, arg bson.RawValue) (any, error) {
	was, ok := value(old)
	if !ok {
		if op == "$inc" {
			return arg, nil
		}
		was = bson.RawValue{Type: bson.TypeInt32, Value: make([]byte, 4)}
	}
	if !was.IsNumber() || was.Type == bson.TypeDecimal128 {
		return nil, fail(TypeMismatch, "Cannot apply %s to a value of non-numeric type", op)
	}
	x, xok := integer(was)
	y, yok := integer(arg)
	if !xok || !yok {
		if op == "$mul" {
			return float(was) * float(arg), nil
		}
		return float(was) + float(arg), nil
	}
	sum := x + y
	if op == "$mul" {
		sum = x * y
	}
	if was.Type == bson.TypeInt32 && arg.Type == bson.TypeInt32 && sum == int64(int32(sum)) && sum <= math.MaxInt32 {
		return int32(sum), nil
	}
	return sum, nil
}

func editArray(op string, old any, arg bson.RawValue) (any, error) {
	list, ok := old.(bson.A)
	if !ok && old != nil {
		return nil, fail(BadValue, "The field must be an array for %s", op)
	}
	if op == "$pull" {
		return slices.DeleteFunc(list, func(v any) bool {
			was, _ := value(v)
			m, err := matchValue(arg, []bson.RawValue{was})
			return err == nil && m
		}), nil
	}
	added := []bson.RawValue{arg}
	if doc, ok := arg.DocumentOK(); ok {
		if each, ok := doc.Lookup("$each").ArrayOK(); ok {
			added = items(bson.RawValue{Type: bson.TypeArray, Value: each})
		}
	}
	for _, v := range added {
		same := func(o any) bool { was, ok := value(o); return ok && compare(was, v) == 0 }
		if op == "$push" || !slices.ContainsFunc(list, same) {
			list = append(list, v)
		}
	}
	return list, nil
}

func rename(d *bson.D, from []string, arg bson.RawValue) error {
	to, ok := arg.StringValueOK()
	if !ok {
		return fail(BadValue, "The 'to' field for $rename must be a string")
	}
	var moved any
	out, err := change(any(*d), from, func(old any) (any, error) { moved = old; return drop{}, nil })
	if err != nil || moved == nil {
		return err
	}
	out, err = change(out, strings.Split(to, "."), func(any) (any, error) { return moved, nil })
	if err == nil {
		*d = out.(bson.D)
	}
	return err
}

// change returns node with what edit makes of the value at the end of the path.
// Documents on the way are made where they are missing.
func change(node any, path []string, edit func(any) (any, error)) (any, error) {
	if len(path) == 0 {
		return edit(node)
	}
	if raw, ok := node.(bson.RawValue); ok && (raw.Type == bson.TypeEmbeddedDocument || raw.Type == bson.TypeArray) {
		return nil, fail(BadValue, "Updating a path that another operator of the update has set is not supported")
	}
	switch n := node.(type) {
	case nil:
		v, err := change(nil, path[1:], edit)
		if _, gone := v.(drop); gone || err != nil {
			return v, err
		}
		return bson.D{{Key: path[0], Value: v}}, nil
	case bson.D:
		return changeDocument(n, path, edit)
	case bson.A:
		return changeArray(n, path, edit)
	default:
		return nil, fail(PathNotViable, "Cannot create field '%s' in a value that is no document", path[0])
	}
}

func changeDocument(d bson.D, path []string, edit func(any) (any, error)) (any, error) {
	i := slices.IndexFunc(d, func(e bson.E) bool { return e.Key == path[0] })
	var child any
	if i >= 0 {
		child = d[i].Value
		if child == nil {
			child = bson.Null{}
		}
	}
	v, err := change(child, path[1:], edit)
	if err != nil {
		return nil, err
	}
	_, gone := v.(drop)
	switch {
	case gone && i >= 0:
		return slices.Delete(d, i, i+1), nil
	case gone:
		return d, nil
	case i >= 0:
		d[i].Value = v
		return d, nil
	default:
		return append(d, bson.E{Key: path[0], Value: v}), nil
	}
}

func changeArray(a bson.A, path []string, edit func(any) (any, error)) (any, error) {
	i, err := strconv.Atoi(path[0])
	if err != nil || i < 0 || i > len(a)+1000 {
		return nil, fail(PathNotViable, "Cannot create field '%s' in an array", path[0])
	}
	for len(a) <= i {
		a = append(a, bson.Null{})
	}
	v, err := change(a[i], path[1:], edit)
	if _, gone := v.(drop); gone {
		v = bson.Null{}
	}
	a[i] = v
	return a, err
}
