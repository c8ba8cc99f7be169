package spillway

import (
	"fmt"
	"reflect"
)

// A FieldError reports that a field of a Config has a value that is not allowed. New
// and Update of all packages return it, wrapped in an error that names the package: use
// errors.As to get it.
type FieldError struct {
	// Path names the field, seen from the Config that the caller gave: "K",
	// "Shed.MaxWait", "Signals[2].Target".
	Path string
	// Value is the value of the field. It is nil where the field is nil.
	Value any
	// Allowed says what the field must be: "above 1 and at most 100". It is text for
	// people only.
	Allowed string
}

// Error returns the path, the value and what is allowed.
func (e *FieldError) Error() string { return e.Path + " " + e.Problem() }

// Problem returns the text of Error without the path, for programs that have another name
// for the field: "is 1, must be above 1 and at most 100".
func (e *FieldError) Problem() string { return "is " + e.value() + ", must be " + e.Allowed }

// value returns the text of the value. What has no short text, such as a func, is "set".
func (e *FieldError) value() string {
	_, hasText := e.Value.(fmt.Stringer)
	switch v := reflect.ValueOf(e.Value); v.Kind() {
	case reflect.Invalid:
		return "nil"
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Chan, reflect.UnsafePointer:
		return "set"
	case reflect.Struct:
		if !hasText {
			return "set"
		}
	case reflect.String:
		return quoted(fmt.Sprint(e.Value))
	default:
	}
	return fmt.Sprintf("%.100s", fmt.Sprint(e.Value))
}

// quoted returns a string in quotes. Of a long one it is the start, and the length.
func quoted(s string) string {
	const most = 64
	if len(s) <= most {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%.*q... (%d bytes)", most, s, len(s))
}
