package config

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/seed90641741/spillway/cmd/spillway/internal/strict"
)

// maxSize is the most that a file may hold.
const maxSize = 16 << 20

// An Error is what is wrong with a configuration, and where.
type Error = strict.Error

func failf(field, format string, args ...any) *Error {
	return &Error{Field: field, Problem: fmt.Sprintf(format, args...)}
}

// Open reads the configuration in a file. Errors of what is in it are [strict.Errors].
func Open(name string) (*Config, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return Parse(name, text)
}

// Parse reads and checks a configuration. It does not check the files that it names. Errors
// are [strict.Errors] in the order of the file, and have its name.
func Parse(name string, text []byte) (*Config, error) {
	c := new(Config)
	if err := decode(name, text, c, c.check, c.checkPart); err != nil {
		return nil, err
	}
	return c, nil
}

// decode reads a text into a struct, and returns what check then finds, with its lines. Where fields could not be read,
// it returns those, and what part finds in the rest.
func decode(name string, text []byte, into any, check, part func() strict.Errors) error {
	s := strict.Source{Name: name, Text: text}
	var errs strict.Errors
	if err := s.Decode(into, maxSize); err == nil {
		errs = s.Locate(check())
	} else if errs = unread(err); errs == nil {
		return err
	} else {
		for _, e := range s.Locate(part()) {
			errs.Add(e)
		}
	}
	slices.SortStableFunc(errs, func(a, b *Error) int { return cmp.Compare(a.Line, b.Line) })
	return errs.Err()
}

// unread returns what an error says of fields that could not be read, if the rest was.
func unread(err error) strict.Errors {
	errs, _ := errors.AsType[strict.Errors](err)
	if slices.ContainsFunc(errs, func(e *Error) bool { return e.Field == "" }) {
		return nil
	}
	return errs
}
