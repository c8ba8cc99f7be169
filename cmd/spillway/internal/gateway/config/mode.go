package config

import (
	"reflect"
	"strings"

	"github.com/seed90641741/spillway"
)

// WithMode returns a copy of c with another mode, and the gates that keep their own, as
// "clusters[shop].shed.mode: observe". A gate keeps a mode that does less: off does less than
// observe, and observe less than enforce. So with [spillway.ModeObserve] no gate rejects, and
// [spillway.ModeEnforce] changes no gate that is to observe.
func (c *Config) WithMode(mode spillway.Mode) (with *Config, kept []string) {
	with = lowered(reflect.ValueOf(c), mode).Interface().(*Config) //nolint:forcetypeassert // a copy of c
	with.Mode = Mode(mode.String())
	for _, line := range Given("", *with) {
		if field, value, _ := strings.Cut(line, ": "); strings.HasSuffix(field, ".mode") && value != mode.String() {
			kept = append(kept, line)
		}
	}
	return with, kept
}

// lowered returns a copy of v in which no mode does more than most.
func lowered(v reflect.Value, most spillway.Mode) reflect.Value {
	to := reflect.New(v.Type()).Elem()
	to.Set(v)
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			to.Set(reflect.New(v.Type().Elem()))
			to.Elem().Set(lowered(v.Elem(), most))
		}
	case reflect.Struct:
		for i := range to.NumField() {
			if f := to.Field(i); f.CanSet() {
				f.Set(lowered(v.Field(i), most))
			}
		}
	case reflect.Slice:
		if !v.IsNil() {
			to.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		}
		for i := range v.Len() {
			to.Index(i).Set(lowered(v.Index(i), most))
		}
	case reflect.String:
		if m, ok := reflect.TypeAssert[Mode](v); ok && m.Or(most) < most {
			to.SetString(most.String())
		}
	default: // values of maps have no mode
	}
	return to
}
