// Package document reads configurations of other programs as trees, and keeps account of each leaf:
// what it was carried to, or why it was left out.
package document

import "fmt"

// Carried is a leaf that was carried over.
type Carried struct {
	Path string `json:"path"`
	To   string `json:"to"` // the field of the configuration
}

// A Note is of a leaf that was not carried over as it is. One without a path is of
// something that no document says.
type Note struct {
	Path    string `json:"path,omitempty"`
	Whole   string `json:"whole,omitempty"` // the path of what was left out as a whole, with this and other leaves
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

// Lines returns the notes as text, one line for each, and for what was left out as a whole.
func (r *Report) Lines() (lines []string) {
	for i := 0; i < len(r.Notes); {
		n, after := r.Notes[i], i+1
		for n.Whole != "" && after < len(r.Notes) && r.Notes[after].Whole == n.Whole && r.Notes[after].Why == n.Why {
			after++
		}
		if values := after - i; values > 1 {
			n.Path, n.Value = n.Whole, fmt.Sprintf("%s and %d values more", n.Value, values-1)
		}
		lines = append(lines, n.String())
		i = after
	}
	return lines
}

// A Report says what happened to each leaf. The zero Report is empty.
type Report struct {
	Carried []Carried `json:"carried"`
	// Notes are of what was left out or means something else; after Sort the worst first.
	Notes []Note `json:"notes"`

	said map[string]bool // leaves, by path
}

// Root returns a document as a part whose leaves are reported to r.
func (r *Report) Root(value any) Part { return Part{report: r, Value: value} }

// Notef adds a note that is of no leaf.
func (r *Report) Notef(format string, args ...any) {
	r.Notes = append(r.Notes, Note{Why: fmt.Sprintf(format, args...), Rank: Detail})
}

// A Mark is a place in a report to which it can go back.
type Mark struct{ carried, notes int }

// Mark returns the place after what was said so far.
func (r *Report) Mark() Mark { return Mark{len(r.Carried), len(r.Notes)} }

// Back takes back what was said since.
func (r *Report) Back(to Mark) {
	for _, c := range r.Carried[to.carried:] {
		delete(r.said, c.Path)
	}
	for _, n := range r.Notes[to.notes:] {
		delete(r.said, n.Path)
	}
	r.Carried, r.Notes = r.Carried[:to.carried], r.Notes[:to.notes]
}

// say reports whether nothing was said yet of a leaf.
func (r *Report) say(path string) bool {
	if r.said == nil {
		r.said = make(map[string]bool)
	}
	before := r.said[path]
	r.said[path] = true
	return !before
}
