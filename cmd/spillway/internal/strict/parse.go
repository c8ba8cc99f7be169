package strict

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// parse returns the root of the one document in the text, nil if absent.
func (s Source) parse(most int) (root *yaml.Node, bad *Error) {
	if len(s.Text) > most {
		return nil, &Error{File: s.Name, Problem: fmt.Sprintf("has %d bytes, more than %d", len(s.Text), most)}
	}
	d := yaml.NewDecoder(bytes.NewReader(bytes.TrimPrefix(s.Text, []byte("\ufeff"))))
	var first, second yaml.Node
	err := read(d, &first)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err == nil {
		if err = read(d, &second); errors.Is(err, io.EOF) {
			return first.Content[0], nil
		}
	}
	bad = &Error{Line: second.Line, Problem: "a second document begins here; a file must have one"}
	if err != nil {
		bad.Line, bad.Problem = lineOf(err)
	}
	return nil, s.placed(Errors{bad})[0]
}

// read reads one document. A panic of the library is an error like others.
func read(d *yaml.Decoder, n *yaml.Node) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("cannot be read: %v", p)
		}
	}()
	return d.Decode(n)
}

// ofLibrary is how errors of the library begin.
var ofLibrary = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// lineOf splits an error of the library.
func lineOf(err error) (line int, problem string) {
	text := err.Error()
	if m := ofLibrary.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1]) // 0: unknown
		text = text[len(m[0]):]
	}
	return line, "is not YAML: " + strings.TrimSpace(text)
}
