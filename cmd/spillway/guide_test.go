//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// guides are the pages with a reference of fields, by their schemas.
var guides = map[string]string{"configuration.md": config.Schema, "quota-service.md": config.QuotaSchema}

// generated replaces what is between the marks of a part of the guide.
func generated(t *testing.T, text, part, want string) string {
	t.Helper()
	begin, end := "<!-- "+part+": generated -->\n", "<!-- end of "+part+" -->"
	head, rest, ok := strings.Cut(text, begin)
	_, tail, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatalf("the reference has no marks for %s", part)
	}
	return head + begin + "\n" + want + "\n" + end + tail
}

// TestGuide compares each reference with its schema.
func TestGuide(t *testing.T) {
	for page, schema := range guides {
		name := filepath.Join("../../docs", page)
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		other := ""
		if page != "configuration.md" {
			other = config.Schema
		}
		want := generated(t, string(text), "configuration", configReference(t, schema, other))
		if *update {
			if err := os.WriteFile(name, []byte(want), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if want != string(text) {
			t.Errorf("docs/%s is not up to date: run go test -run TestGuide -update in this directory", page)
		}
	}
}

// fields are the fields of an object, in their order.
type fields []struct {
	key   string
	value any
}

// UnmarshalYAML implements [yaml.Unmarshaler].
func (f *fields) UnmarshalYAML(n *yaml.Node) error {
	for i := 0; i+1 < len(n.Content); i += 2 {
		var value any
		var err error
		if n.Content[i+1].Kind == yaml.MappingNode {
			var below fields
			err = n.Content[i+1].Decode(&below)
			value = below
		} else {
			err = n.Content[i+1].Decode(&value)
		}
		if err != nil {
			return err
		}
		*f = append(*f, struct {
			key   string
			value any
		}{n.Content[i].Value, value})
	}
	return nil
}

func get(m fields, key string) any {
	for _, item := range m {
		if item.key == key {
			return item.value
		}
	}
	return nil
}

func object(v any) fields {
	m, _ := v.(fields)
	return m
}

// configReference makes the lists of the schema: one for each type, with the paths
// where it is. Of types and fields that another schema has, too, it only says so.
func configReference(t *testing.T, text, other string) string {
	t.Helper()
	known := make(map[string]bool) // lists, and lines of them
	if other != "" {
		for _, part := range lists(t, other).parts {
			known[part.text] = true
			for line := range strings.Lines(part.text) {
				known[line] = true
			}
		}
	}
	r := lists(t, text)
	var b strings.Builder
	var same []string // names of fields and paths
	for _, part := range r.parts {
		paths := r.paths[part.name]
		if known[part.text] && len(part.text) > 200 {
			same = append(same, paths...)
			continue
		}
		if part.name != "" {
			fmt.Fprintf(&b, "\n#### `%s`\n\n", strings.Join(paths, "`, `"))
		}
		for line := range strings.Lines(part.text) {
			if name := strings.Split(line, "`"); known[line] && name[0] == "- " {
				same = append(same, name[1])
				continue
			}
			b.WriteString(line)
		}
	}
	if len(same) > 0 {
		slices.Sort(same)
		fmt.Fprintf(&b, "\nAs in [the configuration of the proxy](configuration.md): `%s`.\n", strings.Join(slices.Compact(same), "`, `"))
	}
	return strings.TrimSpace(b.String()) + "\n"
}

// lists returns the lists of a schema.
func lists(t *testing.T, text string) *reference {
	t.Helper()
	var schema fields
	if err := yaml.Unmarshal([]byte(text), &schema); err != nil {
		t.Fatal(err)
	}
	r := &reference{defs: object(get(schema, "$defs")), paths: make(map[string][]string)}
	root := schema
	if name := refOf(schema); name != "" {
		root = object(get(r.defs, name))
	}
	r.list("", root)
	for len(r.parts) <= len(r.order) { // which grows meanwhile; the first list is of none
		name := r.order[len(r.parts)-1]
		r.list(name, object(get(r.defs, name)))
	}
	return r
}

type reference struct {
	defs  fields
	order []string            // of types, as they are met
	paths map[string][]string // of types
	parts []struct{ name, text string }
}

func refOf(m fields) string {
	ref, _ := get(m, "$ref").(string)
	return strings.TrimPrefix(ref, "#/$defs/")
}

// list adds that of a type. Fields whose names say all are in one line.
func (r *reference) list(name string, m fields) {
	required, _ := get(m, "required").([]any)
	var b strings.Builder
	var names []string
	says := false
	for _, item := range object(get(m, "properties")) {
		key, field := item.key, object(item.value)
		kind := r.kind(name, key, field)
		if slices.Contains(required, any(key)) {
			kind += ", required"
		}
		means, _ := get(field, "description").(string)
		means = strings.TrimPrefix(means, "off, observe or enforce.") // as the kind says
		b.WriteString(strings.TrimSuffix(fmt.Sprintf("- `%s` (%s): %s", key, kind, strings.ReplaceAll(means, "*", `\*`)), ": ") + "\n")
		names, says = append(names, fmt.Sprintf("`%s` (%s)", key, kind)), says || means != ""
	}
	list := b.String()
	if !says {
		list = strings.Join(names, ", ") + "\n"
	}
	r.parts = append(r.parts, struct{ name, text string }{name, list})
}

// kind says what a field is, and takes note of the type that it has.
func (r *reference) kind(of, key string, field fields) string {
	meet := func(name, suffix string) {
		if len(r.paths[name]) == 0 {
			r.order = append(r.order, name)
		}
		above := []string{""}
		if of != "" {
			above = nil
			for _, p := range r.paths[of] {
				above = append(above, p+".")
			}
		}
		for _, p := range above {
			r.paths[name] = append(r.paths[name], p+key+suffix)
		}
	}
	if name := refOf(field); name != "" {
		if def := object(get(r.defs, name)); get(def, "type") != "object" && len(object(get(def, "properties"))) == 0 {
			return "list of strings"
		}
		meet(name, "")
		return "object"
	}
	switch get(field, "type") {
	case "array":
		items := object(get(field, "items"))
		if name := refOf(items); name != "" {
			meet(name, "[]")
			return "list of objects"
		}
		return fmt.Sprintf("list of %vs", get(items, "type"))
	case "object":
		more := object(get(field, "additionalProperties"))
		if name := refOf(more); name != "" {
			meet(name, ".NAME")
			return "objects by name"
		}
		return "texts by name"
	}
	if all, ok := get(field, "enum").([]any); ok {
		texts := make([]string, 0, len(all))
		for _, v := range all {
			texts = append(texts, fmt.Sprintf("`%v`", v))
		}
		return strings.Join(texts, ", ")
	}
	if examples, ok := get(field, "examples").([]any); ok && examples[0] == "150ms" {
		return "time"
	}
	return fmt.Sprint(get(field, "type"))
}

// TestExamples loads the configurations that come along.
func TestExamples(t *testing.T) {
	load := func(name, text string) {
		if _, err := config.Parse(name, []byte(text)); err != nil {
			t.Errorf("%v:\n%s", err, text)
		}
	}
	for _, name := range []string{shop, "../../deploy/spillway.yaml"} {
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		load(name, string(file))
	}
	imported, err := filepath.Glob("internal/gateway/importer/testdata/*.golden")
	if err != nil || len(imported) < 2 {
		t.Fatal(err, imported)
	}
	for _, name := range imported {
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text, _, _ := strings.Cut(string(file), "---\n")
		load(name, text)
	}
}
