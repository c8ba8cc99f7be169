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
	"fmt"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// maxSize is the most bytes that a document may hold.
const maxSize = 4 << 20

// A Document is a file.
type Document struct {
	Name string // for paths and errors
	Text []byte
}

// A Result is what happened to some documents.
type Result struct {
	Config  *config.Config `json:"-"`
	Carried []Carried      `json:"carried"`
	// Notes are of what was left out or means something else, the worst first.
	Notes []Note `json:"notes"`

	nothing bool // that the documents describe was imported
}

// Carried is a leaf that was carried over.
type Carried struct {
	Path string `json:"path"`
	To   string `json:"to"` // the field of the configuration
}

// A Note is of a leaf that was not carried over as it is. One without a path is of
// something that no document says.
type Note struct {
	Path    string `json:"path,omitempty"`
	Value   string `json:"value,omitempty"`
	Left    bool   `json:"left_out"` // else it was carried, and means something else
	Rank    Rank   `json:"rank"`
	Why     string `json:"why"`
	Instead string `json:"instead,omitempty"`
}

// String returns the note as a line.
func (n Note) String() string {
	s := "note: "
	if n.Path != "" {
		s = map[bool]string{true: "left out", false: "changed"}[n.Left] + " (" + n.Rank.String() + "): " + n.Path + " = " + n.Value + ": "
	}
	s += n.Why
	if n.Instead != "" {
		s += "; instead: " + n.Instead
	}
	return s
}

// A report is a Result that is being made.
type report struct {
	result Result
	said   map[string]bool // leaves, by path
}

func newReport() *report { return &report{said: make(map[string]bool)} }

// notef adds a note that is of no leaf.
func (r *report) notef(format string, args ...any) {
	r.result.Notes = append(r.result.Notes, Note{Why: fmt.Sprintf(format, args...), Rank: Detail})
}

// mark is a place in a report to which it can go back.
type mark struct{ carried, notes int }

func (r *report) mark() mark { return mark{len(r.result.Carried), len(r.result.Notes)} }

// back takes back what was said since.
func (r *report) back(to mark) {
	for _, c := range r.result.Carried[to.carried:] {
		delete(r.said, c.Path)
	}
	for _, n := range r.result.Notes[to.notes:] {
		delete(r.said, n.Path)
	}
	r.result.Carried, r.result.Notes = r.result.Carried[:to.carried], r.result.Notes[:to.notes]
}

// say reports whether nothing was said yet of a leaf.
func (r *report) say(path string) bool {
	before := r.said[path]
	r.said[path] = true
	return !before
}
