// Package strict reads YAML into structs, of which JSON is a part, and says what is
// wrong with it: the file, the line, the field, and the text around it. A field that
// there is none of is wrong, as is a value that cannot be read.
package strict

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// An Error is what is wrong with a file, and where.
type Error struct {
	File    string // empty: it is of no file
	Line    int    // from 1; 0: not known
	Field   string // as in the file: clusters[0].throttle.k; empty: not known
	Problem string
	Excerpt string // of the file, with lines numbered; may be empty
}

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
	return s
}

// A Source is the text of a file. Its errors are of type [*Error].
type Source struct {
	Name string // of the file, for errors
	Text []byte
}

// A Value says how values of one type are read.
type Value func(wrong **textError) yaml.DecodeOption

// Text is a Value of type T that parse reads. Its error says what is wrong with the
// text, or what it must be.
func Text[T any](parse func(string) (T, error)) Value {
	return func(wrong **textError) yaml.DecodeOption {
		return yaml.CustomUnmarshaler(func(v *T, text []byte) (err error) {
			plain := strings.Trim(strings.TrimSpace(string(text)), `"'`)
			if *v, err = parse(plain); err == nil {
				return nil
			}
			if *wrong == nil { // the first one is told
				*wrong = &textError{plain, err.Error()}
			}
			return *wrong
		})
	}
}

// known reads what Decode always knows: lengths of time, and whole numbers, of which the
// library would cut off what follows a decimal point.
var known = []Value{Text(length), Text(whole[int]), Text(whole[int64]), Text(natural)}

func length(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, errors.New("must be a length of time, such as 150ms or 1m30s")
	}
	return d, nil
}

func whole[T int | int64](s string) (T, error) {
	if n, err := strconv.ParseInt(s, 0, 64); err == nil && int64(T(n)) == n {
		return T(n), nil
	}
	f, err := strconv.ParseFloat(s, 64) // 1e6 is one
	if err != nil || f != math.Trunc(f) || math.Abs(f) > math.MaxInt32 {
		return 0, errors.New("must be a whole number")
	}
	return T(f), nil
}

func natural(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 0, 64)
	if err != nil {
		return 0, errors.New("must be a whole number that is not negative")
	}
	return n, nil
}

// Plain returns a text without the mark that some editors put before it.
func Plain(text []byte) []byte { return bytes.TrimPrefix(text, []byte("\ufeff")) }

// A text may have one word or sign for so many of the bytes that it may hold, and so many
// in any case: reading many of these takes far longer than reading as many bytes of text.
const (
	bytesPerWord = 64
	fewWords     = 1000
)

// Decode reads the text, of at most so many bytes and words in proportion, into the
// struct that v points to, by its yaml tags. Lengths of time are written as Go has them; values say what else
// is written as text.
func (s Source) Decode(v any, most int, values ...Value) error {
	if len(s.Text) > most {
		return &Error{File: s.Name, Problem: fmt.Sprintf("has %d bytes, more than %d", len(s.Text), most)}
	}
	s.Text = Plain(s.Text)
	var wrong *textError // the decoder does not say where one is
	options := []yaml.DecodeOption{yaml.Strict()}
	for _, value := range slices.Concat(known, values) {
		options = append(options, value(&wrong))
	}
	err := Guard(s.Text, max(fewWords, most/bytesPerWord), func() error { return yaml.NewDecoder(bytes.NewReader(s.Text), options...).Decode(v) })
	switch {
	case wrong != nil:
		return s.misspelled(wrong)
	case err != nil && !errors.Is(err, io.EOF): // which is a file that says nothing
		return s.syntax(err, reflect.TypeOf(v))
	}
	return nil
}

// Guard returns the error of read, which calls the YAML library with the text, or one for
// a panic of that, which some files that make no sense cause. What would keep the library
// busy is not read: more than so many words and signs, or nesting without end.
func Guard(text []byte, words int, read func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("cannot be read: look for a tag, an anchor or an alias without a value")
		}
	}()
	if err := bounded(text, words); err != nil {
		return err
	}
	return read()
}

// textError is a value that cannot be read.
type textError struct{ text, problem string }

func (w *textError) Error() string { return w.problem }

// misspelled says where the first value with this text is.
func (s Source) misspelled(w *textError) error {
	e := &Error{File: s.Name, Problem: fmt.Sprintf("is %.64q: %s", w.text, w.problem)}
	s.put(e, s.find(func(n ast.Node) bool {
		_, isScalar := n.(ast.ScalarNode)
		_, isKey := n.(ast.MapKeyNode)
		return isScalar && isKey && n.GetToken().Value == w.text
	}))
	return e
}

// syntax says where a file cannot be read into a t.
func (s Source) syntax(err error, t reflect.Type) error {
	e := &Error{File: s.Name, Problem: strings.TrimSpace(err.Error())}
	known, ok := errors.AsType[yaml.Error](err)
	if !ok || known.GetToken() == nil {
		return e
	}
	at := known.GetToken().Position
	e.Problem = known.GetMessage()
	if _, ok := errors.AsType[*yaml.UnknownFieldError](err); ok {
		e.Problem = "is no field here" + suggest(known.GetToken().Value, t)
	}
	if t, ok := errors.AsType[*yaml.TypeError](err); ok {
		e.Problem = fmt.Sprintf("cannot be a %v, must be a %v", t.SrcType, t.DstType)
	}
	s.put(e, s.find(func(n ast.Node) bool {
		t := n.GetToken()
		return t != nil && t.Position.Line == at.Line && t.Position.Column == at.Column
	}))
	e.Line, e.Excerpt = at.Line, s.excerpt(at.Line)
	return e
}

// At returns the error of a field, with the place in the text where it is, or that of
// the nearest one around it.
func (s Source) At(field, problem string) *Error {
	s.Text = Plain(s.Text)
	e := &Error{File: s.Name, Line: s.line(field), Field: field, Problem: problem}
	e.Excerpt = s.excerpt(e.Line)
	return e
}

func (s Source) line(field string) (line int) {
	_ = Guard(s.Text, math.MaxInt, func() error { // without a line, the error says all else
		file, err := parser.ParseBytes(s.Text, 0)
		if err == nil {
			line = lineOf(file, field)
		}
		return err
	})
	return line
}

func lineOf(file *ast.File, field string) int {
	for path := "$." + field; strings.Contains(path, "."); path = path[:strings.LastIndexAny(path, ".[")] {
		p, err := yaml.PathString(path)
		if err != nil {
			continue
		}
		if node, err := p.FilterFile(file); err == nil && node.GetToken() != nil {
			return node.GetToken().Position.Line
		}
	}
	return 1
}

// put says in e where a node is, if it was found.
func (s Source) put(e *Error, n ast.Node) {
	if n != nil {
		e.Line, e.Field = n.GetToken().Position.Line, strings.TrimPrefix(n.GetPath(), "$.")
		e.Excerpt = s.excerpt(e.Line)
	}
}

// excerpt returns a line with those around it, numbered and marked.
func (s Source) excerpt(line int) string {
	lines := strings.Split(strings.TrimRight(string(s.Text), "\n"), "\n")
	if line < 1 || line > len(lines) {
		return ""
	}
	var b strings.Builder
	for i := max(1, line-2); i <= min(len(lines), line+1); i++ {
		mark := ' '
		if i == line {
			mark = '>'
		}
		fmt.Fprintf(&b, "%c %4d | %.160s\n", mark, i, strings.TrimRight(lines[i-1], "\r"))
	}
	return strings.TrimRight(b.String(), "\n")
}

// find returns the first node of the text that is meant, nil if there is none.
func (s Source) find(is func(ast.Node) bool) ast.Node {
	f := finder{is: is}
	_ = Guard(s.Text, math.MaxInt, func() error { // what cannot be read has no nodes
		file, err := parser.ParseBytes(s.Text, 0)
		if err != nil {
			return err
		}
		for _, doc := range file.Docs {
			ast.Walk(&f, doc)
		}
		return nil
	})
	return f.found
}

// A finder visits nodes until it has found one.
type finder struct {
	is    func(ast.Node) bool
	found ast.Node
}

// Visit implements [ast.Visitor].
func (f *finder) Visit(n ast.Node) ast.Visitor {
	if f.found == nil && n != nil && f.is(n) {
		f.found = n
	}
	return f
}
