package document

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Part is a part of a document. The zero Part is a part that is not there.
type Part struct {
	report *Report
	Path   string
	Value  any
	hidden bool // in a typed secret
	Fold   bool // names of fields are compared without regard to case
	Single bool // a value that is not a list counts as a list of itself, as protobuf has it
}

func (c Part) part(path string, value any) Part {
	m, _ := c.Value.(map[string]any)
	kind, _ := m["@type"].(string)
	return Part{c.report, path, value, c.hidden || strings.HasSuffix(kind, ".Secret"), c.Fold, c.Single}
}

// Ambiguous returns an error for an object with two names that differ in their case only.
func Ambiguous(path string, value any) error {
	switch v := value.(type) {
	case map[string]any:
		seen := make(map[string]string, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if other, again := seen[strings.ToLower(key)]; again {
				return fmt.Errorf("has %.100q and %.100q in one object, which gRPC takes for one field", join(path, other), join(path, key))
			}
			seen[strings.ToLower(key)] = key
			if err := Ambiguous(join(path, key), v[key]); err != nil {
				return err
			}
		}
	case []any:
		for i, part := range v {
			if err := Ambiguous(fmt.Sprintf("%s[%d]", path, i), part); err != nil {
				return err
			}
		}
	}
	return nil
}

// Given reports whether c is there, with or without a value.
func (c Part) Given() bool { return c.report != nil }

// Empty reports whether c is an object without fields, or none.
func (c Part) Empty() bool {
	m, _ := c.Value.(map[string]any)
	return len(m) == 0
}

// There reports whether c has a value.
func (c Part) There() bool { return c.report != nil && c.Value != nil }

// Or returns c, or another part where c has no value.
func (c Part) Or(other Part) Part {
	if c.There() {
		return c
	}
	return other
}

// Get returns a field by its name in snake case; in camel case it counts as well.
func (c Part) Get(name string) Part {
	m, _ := c.Value.(map[string]any)
	if c.Fold {
		for key, v := range m {
			if strings.EqualFold(key, camel(name)) {
				return c.part(join(c.Path, key), v)
			}
		}
		return Part{}
	}
	for _, key := range []string{name, camel(name)} {
		if v, ok := m[key]; ok {
			return c.part(join(c.Path, key), v)
		}
	}
	return Part{}
}

// At returns a part further down.
func (c Part) At(names ...string) Part {
	for _, name := range names {
		c = c.Get(name)
	}
	return c
}

func camel(name string) string {
	parts := strings.Split(name, "_")
	for i, p := range parts[1:] {
		if p != "" {
			parts[i+1] = strings.ToUpper(p[:1]) + p[1:]
		}
	}
	return strings.Join(parts, "")
}

// plain is a key that can stand in a path as it is.
var plain = regexp.MustCompile(`^[A-Za-z0-9_@-]+$`)

func join(path, key string) string {
	switch {
	case !plain.MatchString(key):
		return path + "[" + strconv.Quote(key) + "]"
	case path == "" || strings.HasSuffix(path, ": "):
		return path + key
	default:
		return path + "." + key
	}
}

// List returns the elements of a list.
func (c Part) List() []Part {
	if _, list := c.Value.([]any); !list && c.Single && c.There() {
		return []Part{c}
	}
	return c.elements()
}

// Children returns the elements of a list, or the fields of an object.
func (c Part) Children() []Part { return append(c.elements(), c.Fields()...) }

func (c Part) elements() (all []Part) {
	l, _ := c.Value.([]any)
	for i, v := range l {
		all = append(all, c.part(fmt.Sprintf("%s[%d]", c.Path, i), v))
	}
	return all
}

// Fields returns the fields of an object, by name.
func (c Part) Fields() (all []Part) {
	m, _ := c.Value.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(m)) {
		all = append(all, c.part(join(c.Path, key), m[key]))
	}
	return all
}

// leaves calls f for each leaf of c that has no entry in the report yet: a value, or an object or list that
// is empty.
func (c Part) leaves(f func(Part)) {
	if c.report == nil {
		return
	}
	below := c.Children()
	if len(below) == 0 && c.Path != "" && !strings.HasSuffix(c.Path, ": ") && c.report.say(c.Path) { // a document may say nothing
		f(c)
	}
	for _, part := range below {
		part.leaves(f)
	}
}

// Text returns a leaf as text; other parts are empty.
func (c Part) Text() string {
	switch v := c.Value.(type) {
	case nil, map[string]any, []any:
		return ""
	case string:
		return v
	default:
		return fmt.Sprint(v)
	}
}

// Number returns a leaf as a number.
func (c Part) Number() (float64, bool) {
	f, err := strconv.ParseFloat(c.Text(), 64)
	return f, err == nil
}

// Count returns a whole number that is not negative.
func (c Part) Count() (int, bool) {
	n, err := strconv.ParseInt(c.Text(), 10, 32)
	return int(n), err == nil && n >= 0
}

// seconds is a length of time as protobuf has it in JSON. gRPC also reads .5s and 1.s.
var seconds = regexp.MustCompile(`^([0-9]{1,10}(\.[0-9]{0,9})?|\.[0-9]{1,9})s$`)

// Duration returns a leaf as a length of time.
func (c Part) Duration() (time.Duration, bool) {
	if !seconds.MatchString(c.Text()) {
		return 0, false
	}
	d, err := time.ParseDuration(c.Text())
	return d, err == nil
}

// Carry says of all leaves of c that they were carried to a field.
func (c Part) Carry(to string) { c.Change(to, "") }

// Change says that c was carried, and means something else, unless why is empty.
func (c Part) Change(to, why string) {
	c.leaves(func(leaf Part) {
		c.report.Carried = append(c.report.Carried, Carried{leaf.Path, to})
		if why != "" {
			c.report.Notes = append(c.report.Notes, Note{Path: leaf.Path, Value: leaf.shown(), Why: why, Rank: Detail})
		}
	})
}

// Leave says of all leaves of c that were not carried why, and what to do instead. Their
// ranks follow from their paths.
func (c Part) Leave(why, instead string) { c.leave(rankOf, why, instead) }

// LeaveAs is leave with one rank for all leaves.
func (c Part) LeaveAs(rank Rank, why, instead string) {
	c.leave(func(string) Rank { return rank }, why, instead)
}

// LeaveWhole is LeaveAs for what is a whole to its reader, such as a filter: the text of a report has one line for it.
func (c Part) LeaveWhole(rank Rank, why, instead string) {
	if c.report == nil {
		return
	}
	before := len(c.report.Notes)
	c.LeaveAs(rank, why, instead)
	for i := range c.report.Notes[before:] {
		c.report.Notes[before+i].Whole = c.Path
	}
}

func (c Part) leave(rank func(path string) Rank, why, instead string) {
	c.leaves(func(leaf Part) {
		c.report.Notes = append(c.report.Notes, Note{Path: leaf.Path, Value: leaf.shown(), Left: true, Rank: rank(leaf.Path), Why: why, Instead: instead})
	})
}

// upper is where a word begins in camel case.
var upper = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// secret are paths, in snake case, whose values are not shown: what is called a secret, and everything in
// it, and what is called a token.
var secret = regexp.MustCompile(`(?i)(secret|passw|credential|private_?key|ticket_?keys|access_?key|` +
	`inline_?(string|bytes|code)|authorization|auth_?mechanism_?properties|user_?name|api_?key|session_?token|jwks|cookie|(^|[ ._])token[^.]*$)`)

// tokens are paths of tokens in a bucket.
var tokens = regexp.MustCompile(`(?i)(^|\.)(retry_throttling\.(max_tokens|token_ratio)|token_bucket\.(max_tokens|tokens_per_fill))$`)

// headerValue are paths, in snake case, of what headers are set to or must be: often a token, whatever the
// header is called. Their names are shown.
var headerValue = regexp.MustCompile(`(?i)headers?(_to_[a-z_]+)?\[\d+\]\.(.*\.)?` +
	`(value|raw_value|exact_match|prefix_match|suffix_match|contains_match|exact|prefix|suffix|contains|regex)$`)

// shown is the value of a leaf as it may be shown.
func (c Part) shown() string {
	path := upper.ReplaceAllString(c.Path, "${1}_${2}") // Envoy reads both
	if c.hidden || headerValue.MatchString(path) || secret.MatchString(path) && !tokens.MatchString(path) {
		return "(not shown)"
	}
	switch v := c.Value.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "{}"
	case []any:
		return "[]"
	case string:
		return fmt.Sprintf("%.100q", v)
	default:
		return fmt.Sprintf("%.100s", fmt.Sprint(v))
	}
}

// LastField returns the name of the field that a path ends with, in snake case.
func LastField(path string) string {
	path = upper.ReplaceAllString(path, "${1}_${2}")
	return strings.ToLower(path[strings.LastIndexByte(path, '.')+1:])
}
