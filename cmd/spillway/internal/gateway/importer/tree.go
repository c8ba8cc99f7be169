package importer

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/strict"
)

// A cursor is a part of a document. The zero cursor is a part that is not there.
type cursor struct {
	report *report
	path   string
	value  any
	hidden bool // in a typed secret
	fold   bool // names of fields are compared without regard to case
}

// part returns a part of c.
func (c cursor) part(path string, value any) cursor {
	m, _ := c.value.(map[string]any)
	kind, _ := m["@type"].(string)
	return cursor{c.report, path, value, c.hidden || strings.HasSuffix(kind, ".Secret"), c.fold}
}

// read returns the root of a document. Of several, each has its name in its paths.
func (r *report) read(d Document) (cursor, error) {
	value, err := strict.Source(d).Tree(maxSize)
	if err != nil {
		return cursor{}, err
	}
	switch value.(type) {
	case map[string]any, []any:
		return cursor{report: r, value: value}, nil
	default:
		return cursor{}, fmt.Errorf("%s must be an object or a list", d.Name)
	}
}

// ambiguous returns an error for an object with two names that differ in their case only.
func ambiguous(path string, value any) error {
	switch v := value.(type) {
	case map[string]any:
		seen := make(map[string]string, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if other, again := seen[strings.ToLower(key)]; again {
				return fmt.Errorf("has %.100q and %.100q in one object, which gRPC takes for one field", join(path, other), join(path, key))
			}
			seen[strings.ToLower(key)] = key
			if err := ambiguous(join(path, key), v[key]); err != nil {
				return err
			}
		}
	case []any:
		for i, part := range v {
			if err := ambiguous(fmt.Sprintf("%s[%d]", path, i), part); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c cursor) there() bool { return c.report != nil && c.value != nil }

// get returns a field by its name in snake case; in camel case it counts as well.
func (c cursor) get(name string) cursor {
	m, _ := c.value.(map[string]any)
	if c.fold {
		for key, v := range m {
			if strings.EqualFold(key, camel(name)) {
				return c.part(join(c.path, key), v)
			}
		}
		return cursor{}
	}
	for _, key := range []string{name, camel(name)} {
		if v, ok := m[key]; ok {
			return c.part(join(c.path, key), v)
		}
	}
	return cursor{}
}

// at returns a part further down.
func (c cursor) at(names ...string) cursor {
	for _, name := range names {
		c = c.get(name)
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

// list returns the elements of a list.
func (c cursor) list() (all []cursor) {
	l, _ := c.value.([]any)
	for i, v := range l {
		all = append(all, c.part(fmt.Sprintf("%s[%d]", c.path, i), v))
	}
	return all
}

// fields returns the fields of an object, by name.
func (c cursor) fields() (all []cursor) {
	m, _ := c.value.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(m)) {
		all = append(all, c.part(join(c.path, key), m[key]))
	}
	return all
}

// leaves calls f for each leaf of c: a value, or an object or list that is empty.
func (c cursor) leaves(f func(cursor)) {
	if c.report == nil {
		return
	}
	below := append(c.list(), c.fields()...)
	if len(below) == 0 && c.path != "" && !strings.HasSuffix(c.path, ": ") { // a document may say nothing
		f(c)
	}
	for _, part := range below {
		part.leaves(f)
	}
}

// text returns a leaf as text; other parts are empty.
func (c cursor) text() string {
	switch v := c.value.(type) {
	case nil, map[string]any, []any:
		return ""
	case string:
		return v
	default:
		return fmt.Sprint(v)
	}
}

func (c cursor) number() (float64, bool) {
	f, err := strconv.ParseFloat(c.text(), 64)
	return f, err == nil && c.there()
}

// count returns a whole number.
func (c cursor) count() (int, bool) {
	n, err := strconv.ParseInt(c.text(), 10, 32)
	return int(n), err == nil && c.there()
}

// seconds is a length of time as protobuf has it in JSON. gRPC also reads .5s and 1.s.
var seconds = regexp.MustCompile(`^([0-9]{1,10}(\.[0-9]{0,9})?|\.[0-9]{1,9})s$`)

func (c cursor) duration() (time.Duration, bool) {
	if !seconds.MatchString(c.text()) {
		return 0, false
	}
	d, err := time.ParseDuration(c.text())
	return d, err == nil
}

// carry says of all leaves of c that they were carried to a field.
func (c cursor) carry(to string) {
	c.leaves(func(leaf cursor) {
		if c.report.say(leaf.path) {
			c.report.result.Carried = append(c.report.result.Carried, Carried{leaf.path, to})
		}
	})
}

// changed says that c was carried, and means something else.
func (c cursor) changed(to, why string) {
	c.leaves(func(leaf cursor) {
		if c.report.say(leaf.path) {
			c.report.result.Carried = append(c.report.result.Carried, Carried{leaf.path, to})
			c.report.result.Notes = append(c.report.result.Notes, Note{Path: leaf.path, Value: leaf.shown(), Why: why, Rank: Detail})
		}
	})
}

// leave says of all leaves of c that were not carried why, and what to do instead. Their
// ranks follow from their paths.
func (c cursor) leave(why, instead string) {
	c.leaves(func(leaf cursor) { leaf.leaveOne(rankOf(leaf.path), why, instead) })
}

// leaveAs is leave with one rank for all leaves.
func (c cursor) leaveAs(rank Rank, why, instead string) {
	c.leaves(func(leaf cursor) { leaf.leaveOne(rank, why, instead) })
}

func (c cursor) leaveOne(rank Rank, why, instead string) {
	if c.report.say(c.path) {
		c.report.result.Notes = append(c.report.result.Notes, Note{c.path, c.shown(), true, rank, why, instead})
	}
}

// each calls f for each element of a list.
func (c cursor) each(f func(cursor)) {
	for _, part := range c.list() {
		f(part)
	}
}

// upper is where a word begins in camel case.
var upper = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// secret are paths, in snake case, whose values are not shown: what is called a secret, and everything in
// it, and what is called a token.
var secret = regexp.MustCompile(`(?i)(secret|passw|credential|private_?key|ticket_?keys|access_?key|` +
	`inline_?(string|bytes|code)|authorization|auth_?mechanism_?properties|user_?name|api_?key|session_?token|jwks|cookie|(^|[ ._])token[^.]*$)`)

// tokens are paths of tokens in a bucket.
var tokens = regexp.MustCompile(`(?i)(^|\.)retry_throttling\.(max_tokens|token_ratio)$`)

// headerValue are paths, in snake case, of what headers are set to or must be: often a token, whatever the
// header is called. Their names are shown.
var headerValue = regexp.MustCompile(`(?i)headers?(_to_[a-z_]+)?\[\d+\]\.(.*\.)?` +
	`(value|raw_value|exact_match|prefix_match|suffix_match|contains_match|exact|prefix|suffix|contains|regex)$`)

// shown is the value of a leaf as it may be shown.
func (c cursor) shown() string {
	path := upper.ReplaceAllString(c.path, "${1}_${2}") // Envoy reads both
	if c.hidden || headerValue.MatchString(path) || secret.MatchString(path) && !tokens.MatchString(path) {
		return "(not shown)"
	}
	switch v := c.value.(type) {
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
