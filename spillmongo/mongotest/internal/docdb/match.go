package docdb

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed90641741/spillway/spillmongo/mongotest/internal/wire"
)

// Match reports whether doc matches filter. It errs for a
// filter that it does not understand, whatever doc is.
func Match(filter, doc bson.Raw) (bool, error) {
	all := true
	for k, v := range wire.Elements(filter) {
		ok, err := matchField(k, v, doc)
		if err != nil {
			return false, err
		}
		all = all && ok
	}
	return all, nil
}

func matchField(k string, v bson.RawValue, doc bson.Raw) (bool, error) {
	switch k {
	case "$and", "$or", "$nor":
		return matchLogic(k, v, doc)
	case "$comment":
		return true, nil
	}
	if strings.HasPrefix(k, "$") {
		return false, fail(BadValue, "unknown top level operator: %s", k)
	}
	return matchValue(v, reach(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: doc}, k, nil))
}

func matchLogic(op string, v bson.RawValue, doc bson.Raw) (bool, error) {
	clauses, ok := v.ArrayOK()
	if !ok {
		return false, fail(BadValue, "%s must be an array", op)
	}
	all, some := true, false
	for _, c := range wire.Elements(clauses) {
		filter, ok := c.DocumentOK()
		if !ok {
			return false, fail(BadValue, "%s entries need to be full objects", op)
		}
		m, err := Match(filter, doc)
		if err != nil {
			return false, err
		}
		all, some = all && m, some || m
	}
	return op == "$and" && all || op == "$or" && some || op == "$nor" && !some, nil
}

// matchValue matches the values that a path leads to against what a filter says of
// that path: a value, or operators.
func matchValue(want bson.RawValue, values []bson.RawValue) (bool, error) {
	if want.Type == bson.TypeRegex {
		pattern, options := want.Regex()
		return matchRegex(pattern, options, values)
	}
	ops, ok := want.DocumentOK()
	if !ok || !isOperators(ops) {
		return anyEqual(values, want), nil
	}
	all := true
	for op, arg := range wire.Elements(ops) {
		m, err := matchOperator(op, arg, ops, values)
		if err != nil {
			return false, err
		}
		all = all && m
	}
	return all, nil
}

func isOperators(doc bson.Raw) bool {
	for k := range wire.Elements(doc) {
		return strings.HasPrefix(k, "$")
	}
	return false
}

func matchOperator(op string, arg bson.RawValue, ops bson.Raw, values []bson.RawValue) (bool, error) {
	switch op {
	case "$eq":
		return anyEqual(values, arg), nil
	case "$ne":
		return !anyEqual(values, arg), nil
	case "$gt", "$gte", "$lt", "$lte":
		return anyOrdered(op, values, arg), nil
	case "$in", "$nin":
		m, err := matchIn(arg, values)
		return m == (op == "$in"), err
	case "$exists":
		return (len(values) > 0) == truth(arg), nil
	case "$not":
		m, err := matchValue(arg, values)
		return !m, err
	case "$all":
		return matchAll(arg, values)
	case "$size":
		n, ok := arg.AsInt64OK()
		return anyArray(values, func(a []bson.RawValue) bool { return ok && int64(len(a)) == n }), nil
	case "$elemMatch":
		return matchElement(arg, values)
	case "$regex":
		pattern, options, ok := arg.RegexOK()
		if s, isString := arg.StringValueOK(); isString {
			pattern, ok = s, true
			options, _ = ops.Lookup("$options").StringValueOK()
		}
		if !ok {
			return false, fail(BadValue, "$regex has to be a string")
		}
		return matchRegex(pattern, options, values)
	case "$options":
		return true, nil
	default:
		return false, fail(BadValue, "unknown operator: %s", op)
	}
}

// anyOf reports whether test holds for one of the values, or for an element of one
// that is an array.
func anyOf(values []bson.RawValue, test func(bson.RawValue) bool) bool {
	for _, v := range values {
		if test(v) {
			return true
		}
		if v.Type == bson.TypeArray && slices.ContainsFunc(items(v), test) {
			return true
		}
	}
	return false
}

func anyArray(values []bson.RawValue, test func([]bson.RawValue) bool) bool {
	return slices.ContainsFunc(values, func(v bson.RawValue) bool {
		return v.Type == bson.TypeArray && test(items(v))
	})
}

func items(array bson.RawValue) (out []bson.RawValue) {
	for _, v := range wire.Elements(array.Value) {
		out = append(out, v)
	}
	return out
}

func anyEqual(values []bson.RawValue, want bson.RawValue) bool {
	if class(want.Type) == class(bson.TypeNull) && len(values) == 0 {
		return true
	}
	return anyOf(values, func(v bson.RawValue) bool { return compare(v, want) == 0 })
}

func anyOrdered(op string, values []bson.RawValue, want bson.RawValue) bool {
	return anyOf(values, func(v bson.RawValue) bool {
		if class(v.Type) != class(want.Type) {
			return false
		}
		switch c := compare(v, want); op {
		case "$gt":
			return c > 0
		case "$gte":
			return c >= 0
		case "$lt":
			return c < 0
		default:
			return c <= 0
		}
	})
}

func matchIn(arg bson.RawValue, values []bson.RawValue) (bool, error) {
	if arg.Type != bson.TypeArray {
		return false, fail(BadValue, "$in needs an array")
	}
	for _, want := range items(arg) {
		if want.Type == bson.TypeRegex {
			pattern, options := want.Regex()
			if m, err := matchRegex(pattern, options, values); m || err != nil {
				return m, err
			}
		} else if anyEqual(values, want) {
			return true, nil
		}
	}
	return false, nil
}

func matchAll(arg bson.RawValue, values []bson.RawValue) (bool, error) {
	if arg.Type != bson.TypeArray {
		return false, fail(BadValue, "$all needs an array")
	}
	wants := items(arg)
	return len(wants) > 0 && !slices.ContainsFunc(wants, func(w bson.RawValue) bool { return !anyEqual(values, w) }), nil
}

func matchElement(arg bson.RawValue, values []bson.RawValue) (bool, error) {
	filter, ok := arg.DocumentOK()
	if !ok {
		return false, fail(BadValue, "$elemMatch needs an Object")
	}
	matches := func(v bson.RawValue) (bool, error) {
		if isOperators(filter) {
			return matchValue(arg, []bson.RawValue{v})
		}
		doc, ok := v.DocumentOK()
		if !ok {
			return false, nil
		}
		return Match(filter, doc)
	}
	if _, err := matchValue(arg, nil); err != nil && isOperators(filter) {
		return false, err
	}
	var failed error
	found := anyArray(values, func(a []bson.RawValue) bool {
		return slices.ContainsFunc(a, func(v bson.RawValue) bool {
			m, err := matches(v)
			if err != nil {
				failed = err
			}
			return m
		})
	})
	return found, failed
}

func matchRegex(pattern, options string, values []bson.RawValue) (bool, error) {
	if strings.Trim(options, "ims") != "" {
		return false, fail(BadValue, "regular expression options %q are not supported", options)
	}
	if options != "" {
		pattern = "(?" + options + ")" + pattern
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return false, fail(BadValue, "Regular expression is invalid: %v", err)
	}
	return anyOf(values, func(v bson.RawValue) bool {
		s, ok := v.StringValueOK()
		return ok && re.MatchString(s)
	}), nil
}

// truth is whether a value counts as true.
func truth(v bson.RawValue) bool {
	switch class(v.Type) {
	case 1:
		return false
	case 2:
		return float(v) != 0
	default:
		b, ok := v.BooleanOK()
		return b || !ok
	}
}

// reach appends the values to out that path leads to from v, through documents,
// and through all elements of arrays.
func reach(v bson.RawValue, path string, out []bson.RawValue) []bson.RawValue {
	head, tail, more := strings.Cut(path, ".")
	step := func(child bson.RawValue) {
		if more {
			out = reach(child, tail, out)
		} else {
			out = append(out, child)
		}
	}
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		if child := bson.Raw(v.Value).Lookup(head); !child.IsZero() {
			step(child)
		}
	case bson.TypeArray:
		_, err := strconv.ParseUint(head, 10, 31)
		for k, child := range wire.Elements(v.Value) {
			if err == nil && k == head {
				step(child)
			}
			if child.Type == bson.TypeEmbeddedDocument {
				out = reach(child, path, out)
			}
		}
	default:
	}
	return out
}
