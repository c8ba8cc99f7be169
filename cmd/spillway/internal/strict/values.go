package strict

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Value says how values of one type are read from text.
type Value struct {
	of    reflect.Type
	parse func(string) (reflect.Value, error)
}

// Text is a Value of type T that parse reads. Its error says what is wrong with the
// text, or what it must be.
func Text[T any](parse func(string) (T, error)) Value {
	return Value{reflect.TypeFor[T](), func(s string) (reflect.Value, error) {
		v, err := parse(s)
		return reflect.ValueOf(v), err
	}}
}

// known are the types that can always be read.
var known = []Value{Text(length), Text(whole[int]), Text(whole[int64]), Text(natural), Text(truth), Text(number)}

func valuesByType(more []Value) map[reflect.Type]Value {
	all := make(map[reflect.Type]Value, len(known)+len(more))
	for _, v := range slices.Concat(known, more) {
		all[v.of] = v
	}
	return all
}

func length(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, errors.New("must be a length of time, such as 150ms or 1m30s")
	}
	return d, nil
}

// maxExact is the greatest number to which a float64 has all whole numbers.
const maxExact = 1 << 53

func whole[T int | int64](s string) (T, error) {
	if n, err := strconv.ParseInt(s, 0, 64); err == nil && int64(T(n)) == n {
		return T(n), nil
	}
	f, err := strconv.ParseFloat(s, 64) // 1e6 is one
	switch {
	case err != nil || f != math.Trunc(f):
		return 0, errors.New("must be a whole number")
	case math.Abs(f) > maxExact || float64(T(f)) != f:
		return 0, errors.New("must be a whole number of at most 9e15")
	}
	return T(f), nil
}

func natural(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 0, 64)
	if err != nil {
		return 0, errors.New("must be a whole number that is not negative")
	}
	return n, nil
}

func truth(s string) (bool, error) {
	switch s {
	case "true":
		return true, nil
	case "false":
		return false, nil
	default:
		return false, errors.New("must be true or false")
	}
}

// special are numbers as YAML spells them, and as Go does.
var special = strings.NewReplacer(".inf", "inf", ".nan", "nan")

func number(s string) (float64, error) {
	if n, err := strconv.ParseInt(s, 0, 64); err == nil {
		return float64(n), nil
	}
	f, err := strconv.ParseFloat(special.Replace(s), 64)
	if err != nil {
		return 0, errors.New("must be a number")
	}
	return f, nil
}
