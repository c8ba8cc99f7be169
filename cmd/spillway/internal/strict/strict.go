// Package strict reads YAML, and JSON as a part of it, into structs. It reports all
// problems of a file, each with the line, the field and the text around it. Unknown
// fields and fields that are given twice are errors.
package strict

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// An Error is a problem of a file, and where it is.
type Error struct {
	File    string // empty: not a file
	Line    int    // from 1; 0: unknown
	Field   string // as in the file: clusters[0].throttle.k; empty: unknown
	Problem string
	Excerpt string // of the file, with lines numbered; may be empty
}

// Error returns the problem as it may be written to a terminal.
func (e *Error) Error() string {
	s := e.File
	if e.Line > 0 {
		s += ":" + strconv.Itoa(e.Line)
	}
	if s != "" {
		s += ": "
	}
	if e.Field != "" {
		s += e.Field + " "
	}
	s += e.Problem
	if e.Excerpt != "" {
		s += "\n" + e.Excerpt
	}
	return Printable(s)
}

// Errors are the problems of a file. More than [MaxErrors] are not listed.
type Errors []*Error

// MaxErrors is how many problems of a file are listed.
const MaxErrors = 20

func (all Errors) Error() string {
	texts := make([]string, 0, len(all))
	for _, e := range all {
		texts = append(texts, e.Error())
	}
	return strings.Join(texts, "\n")
}

// Unwrap makes [errors.As] find the first one.
func (all Errors) Unwrap() []error {
	errs := make([]error, 0, len(all))
	for _, e := range all {
		errs = append(errs, e)
	}
	return errs
}

// Add appends a problem, unless there are many, or the field has one already: the second
// mostly follows from the first.
func (all *Errors) Add(e *Error) {
	for _, other := range *all {
		if other.Field == e.Field && e.Field != "" {
			return
		}
	}
	if len(*all) < MaxErrors {
		*all = append(*all, e)
	}
}

// Err returns the errors, nil if absent.
func (all Errors) Err() error {
	if len(all) == 0 {
		return nil
	}
	return all
}

// A Source is the text of a file. Its errors are of type [Errors].
type Source struct {
	Name string // of the file, for errors
	Text []byte
}

// Decode reads the text, of at most so many bytes, into what v points to, by its yaml tags.
// Durations are written as in Go. Each of values reads one more type of value. An any gets a
// map[string]any, a []any, or one value.
func (s Source) Decode(v any, most int, values ...Value) error {
	root, err := s.parse(most)
	if err != nil {
		return Errors{err}
	}
	if root == nil { // the file says nothing
		return nil
	}
	to := reflect.ValueOf(v).Elem()
	d := decoder{values: valuesByType(values), root: to.Type(), nodes: most / bytesPerNode}
	d.decode(root, "", to)
	return s.placed(d.errs).Err()
}

// At returns the error of a field, with the line that has it, or the nearest field around it.
func (s Source) At(field, problem string) *Error {
	return s.Locate(Errors{{Field: field, Problem: problem}})[0]
}

// Locate adds to errors that know their fields the file and the lines.
func (s Source) Locate(all Errors) Errors {
	root, _ := s.parse(len(s.Text)) // of a text that could be decoded
	if root == nil {
		root = &yaml.Node{Line: 1}
	}
	for _, e := range all {
		e.Line = find(root, e.Field).Line
	}
	return s.placed(all)
}

// placed adds the name of the file, and the lines around each problem.
func (s Source) placed(all Errors) Errors {
	lines := strings.Split(strings.TrimRight(string(s.Text), "\n"), "\n")
	for _, e := range all {
		e.File, e.Excerpt = s.Name, excerpt(lines, e.Line)
	}
	return all
}

// excerpt returns a line with those around it, numbered and marked.
func excerpt(lines []string, line int) string {
	if line < 1 || line > len(lines) {
		return ""
	}
	var b strings.Builder
	for i := max(1, line-2); i <= min(len(lines), line+1); i++ {
		mark := ' '
		if i == line {
			mark = '>'
		}
		fmt.Fprintf(&b, "%c %4d | %.160s\n", mark, i, strings.TrimRight(strings.TrimPrefix(lines[i-1], "\ufeff"), "\r"))
	}
	return strings.TrimRight(b.String(), "\n")
}

// find returns the node of a field, or that of the nearest field around it.
func find(n *yaml.Node, field string) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	field = strings.TrimPrefix(field, ".")
	var next *yaml.Node
	longest := 0
	for i, value := range n.Content {
		part := fmt.Sprintf("[%d]", i)
		if n.Kind == yaml.MappingNode {
			if i%2 == 0 {
				continue // a key
			}
			part = n.Content[i-1].Value
		}
		if rest, ok := strings.CutPrefix(field, part); ok && len(part) > longest && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			next, longest = value, len(part)
		}
	}
	if next == nil {
		return n
	}
	return find(next, field[longest:])
}
