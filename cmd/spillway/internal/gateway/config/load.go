package config

import (
	"cmp"
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
	if err := decode(name, text, c, c.check); err != nil {
		return nil, err
	}
	return c, nil
}

// decode reads a text into a struct, and returns what check then finds, with its lines.
func decode(name string, text []byte, into any, check func() strict.Errors) error {
	s := strict.Source{Name: name, Text: text}
	if err := s.Decode(into, maxSize); err != nil {
		return err
	}
	errs := s.Locate(check())
	slices.SortStableFunc(errs, func(a, b *Error) int { return cmp.Compare(a.Line, b.Line) })
	return errs.Err()
}
