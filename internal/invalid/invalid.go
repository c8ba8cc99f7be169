// Package invalid makes the errors of fields that have a value that is not allowed.
package invalid

import (
	"errors"
	"fmt"

	"github.com/seed90641741/spillway"
)

// Field returns a [spillway.FieldError] wrapped in an error of the package pkg. The
// format and args say what the field at path must be.
func Field(pkg, path string, value any, format string, args ...any) error {
	return fmt.Errorf("%s: %w", pkg, &spillway.FieldError{Path: path, Value: value, Allowed: fmt.Sprintf(format, args...)})
}

// In returns err, which a Config at path has, as an error of the package pkg, whose
// Config has that path: the path of a [spillway.FieldError] then begins with it. An empty
// path means the Config itself. In returns nil if err is nil.
func In(pkg, path string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*spillway.FieldError](err); ok {
		outer := *e
		outer.Path = join(path, e.Path)
		return fmt.Errorf("%s: %w", pkg, &outer)
	}
	if path == "" {
		return fmt.Errorf("%s: %w", pkg, err)
	}
	return fmt.Errorf("%s: %s: %w", pkg, path, err)
}

// At returns err, which a policy has with the value of the field at path, as an error of
// the package pkg: the path of a [spillway.FieldError] is path, whatever the policy calls
// the value. At returns nil if err is nil.
func At(pkg, path string, err error) error {
	if e, ok := errors.AsType[*spillway.FieldError](err); ok {
		outer := *e
		outer.Path = path
		return fmt.Errorf("%s: %w", pkg, &outer)
	}
	return In(pkg, path, err)
}

func join(outer, inner string) string {
	if outer == "" || inner == "" {
		return outer + inner
	}
	return outer + "." + inner
}
