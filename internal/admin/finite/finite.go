// Package finite makes figures fit for JSON, which has no infinity and no NaN.
package finite

import (
	"math"
	"reflect"
	"time"
)

// Number returns v, or 0 if v is infinite or NaN.
func Number(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}

// All sets each float64 that a value points to, through exported fields, slices, arrays and pointers, to its
// [Number]. It writes only where a value is infinite or NaN.
func All(pointer any) { all(reflect.ValueOf(pointer)) }

func all(v reflect.Value) {
	switch v.Kind() {
	case reflect.Float64:
		if x := v.Float(); Number(x) != x {
			v.SetFloat(0)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			all(v.Elem())
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			all(v.Index(i))
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				all(v.Field(i))
			}
		}
	default:
	}
}
