// Package stricttest tests that a struct, its JSON schema and files of it agree.
package stricttest

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/invopop/jsonschema"
	validator "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/seed90641741/spillway/cmd/spillway/internal/strict"
)

// A Schema is the JSON schema of what a package reads.
type Schema struct {
	Title string
	Of    any    // a pointer to the struct
	File  string // in the directory of the test
	Text  string // as embedded
	// Without is the tag of the settings that these files do not have, in the form only:"proxy".
	Without string
	// Types are the types that files have as text.
	Types map[reflect.Type]*jsonschema.Schema
}

// Words is the schema of a text that is one of some words.
func Words(all ...any) *jsonschema.Schema { return &jsonschema.Schema{Type: "string", Enum: all} }

// Pattern is the schema of a text.
func Pattern(pattern, example string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: pattern, Examples: []any{example}}
}

// Agrees fails t unless the schema is that of the struct. With update it makes it so.
func (s Schema) Agrees(t *testing.T, update bool) {
	t.Helper()
	want, err := s.generate()
	if err != nil {
		t.Fatal(err)
	}
	if update {
		if err := os.WriteFile(s.File, want, 0o644); err != nil { //nolint:gosec // it is of the source
			t.Fatal(err)
		}
		return
	}
	if s.Text != string(want) {
		t.Errorf("%s is not that of the struct: run go test -update in this directory", s.File)
	}
}

func (s Schema) generate() ([]byte, error) {
	types := map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[time.Duration](): Pattern(`^-?([0-9.]+(ns|us|µs|ms|s|m|h))+$|^0$`, "150ms"),
	}
	maps.Copy(types, s.Types)
	r := jsonschema.Reflector{
		FieldNameTag: "yaml", RequiredFromJSONSchemaTags: true, Anonymous: true,
		Mapper: func(t reflect.Type) *jsonschema.Schema {
			if own, ok := types[t]; ok {
				return new(*own) // to which each field adds what it means
			}
			return nil
		},
	}
	all := r.Reflect(s.Of)
	all.Title = s.Title
	if err := s.documented(all); err != nil {
		return nil, err
	}
	b, err := json.MarshalIndent(all, "", " ")
	return append(b, '\n'), err
}

// Valid returns a func that says what the schema finds wrong with a file.
func (s Schema) Valid(t *testing.T) func(text string) error {
	t.Helper()
	doc, err := validator.UnmarshalJSON(strings.NewReader(s.Text))
	if err != nil {
		t.Fatal(err)
	}
	c := validator.NewCompiler()
	if err := c.AddResource(s.File, doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile(s.File)
	if err != nil {
		t.Fatal(err)
	}
	return func(text string) error {
		var tree any
		if err := (strict.Source{Text: []byte(text)}).Decode(&tree, 1<<24); err != nil {
			t.Fatal(err)
		}
		return schema.Validate(tree)
	}
}
