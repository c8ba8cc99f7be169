// Package importer turns what other programs are configured with into a configuration
// of "spillway proxy", and reports everything that it could not carry over.
//
// A document is read as a tree. Each of its leaves, a value at a path, ends in exactly
// one of two lists: what was carried, and to which field, or what was not, and why. A
// leaf that no code has read is of the second kind, so nothing is dropped in
// silence. A value that the proxy does not accept is not carried either: whatever
// comes out is a configuration that was found good.
//
// What differs in meaning is carried with a note that says how.
package importer

import (
	"errors"
	"fmt"
	"slices"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/importer/document"
	"github.com/seed90641741/spillway/cmd/spillway/internal/strict"
)

// maxSize is the most bytes that a document may hold.
const maxSize = 4 << 20

// A Document is a file. Its name is for paths and errors.
type Document = strict.Source

// The ranks of notes, the worst first, and what an import reports.
const (
	Security = document.Security
	Traffic  = document.Traffic
	Limit    = document.Limit
	Detail   = document.Detail
)

// A Note is of a leaf that was not carried over as it is.
type Note = document.Note

// A Result is what happened to some documents.
type Result struct {
	document.Report

	Config *config.Config `json:"-"`
	// Files are what the configuration needs besides: certificates and keys that the documents contain.
	Files []File `json:"files,omitempty"`

	nothing bool // that the documents describe was imported
	inside  bool // certificates or keys are in the documents, and no directory is given to write them to
}

// Err returns an error if a setting of security was left out, or if nothing could be imported.
func (r *Result) Err() error {
	const lost = "the import is not safe to use: "
	switch n := r.Counts()[Security]; {
	case r.inside && n > 0:
		return errors.New(lost + "certificates or keys are in the input itself; give --certificates DIR, and they are written to files there")
	case r.nothing:
		return errors.New(lost + "no listener and no route, cluster or method of the input could be imported")
	case n > 0:
		return fmt.Errorf(lost+"%d values that concern security were left out; they are the first ones of the report", n)
	default:
		return nil
	}
}

// documents returns the roots of documents, by what read makes of each. Of several documents, each has its name in its paths.
func (r *Result) documents(docs []Document, read func(Document) (any, error)) (roots []document.Part, err error) {
	for i, d := range docs {
		if slices.ContainsFunc(docs[:i], func(other Document) bool { return other.Name == d.Name }) {
			return nil, fmt.Errorf("%s is given twice", d.Name)
		}
	}
	for _, d := range docs {
		value, err := read(d)
		if err != nil {
			return nil, err
		}
		root := r.Root(value)
		if len(docs) > 1 {
			root.Path = d.Name + ": "
		}
		roots = append(roots, root)
	}
	return roots, nil
}

func tree(d Document) (value any, err error) {
	if err := d.Decode(&value, maxSize); err != nil {
		return nil, err
	}
	switch value.(type) {
	case map[string]any, []any:
		return value, nil
	default:
		return nil, fmt.Errorf("%s must be an object or a list", d.Name)
	}
}
