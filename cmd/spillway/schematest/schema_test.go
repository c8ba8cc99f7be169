package schematest

import (
	"encoding/json"
	"flag"
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

var update = flag.Bool("update", false, "write the schemas anew")

// internal is where the schemas are.
const internal = "../internal/"

// A schema is the JSON schema of what a package reads.
type schema struct {
	title string
	of    any    // a pointer to the struct
	file  string // below internal
	text  string // as embedded
	// without is the tag of the settings that these files do not have, in the form only:"proxy".
	without string
	// types are the types that files have as text.
	types map[reflect.Type]*jsonschema.Schema
}

// oneOf is the schema of a text that is one of some words.
func oneOf(all ...any) *jsonschema.Schema { return &jsonschema.Schema{Type: "string", Enum: all} }

// pattern is the schema of a text.
func pattern(pattern, example string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: pattern, Examples: []any{example}}
}

// agrees fails t unless the schema is that of the struct. With -update it makes it so.
func (s schema) agrees(t *testing.T) {
	t.Helper()
	want, err := s.generate()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(internal+s.file, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if s.text != string(want) {
		t.Errorf("%s is not that of the struct: run go test ./cmd/spillway/schematest -update", s.file)
	}
}

func (s schema) generate() ([]byte, error) {
	types := map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[time.Duration](): pattern(`^-?([0-9.]+(ns|us|µs|ms|s|m|h))+$|^0$`, "150ms"),
	}
	maps.Copy(types, s.types)
	r := jsonschema.Reflector{
		FieldNameTag: "yaml", RequiredFromJSONSchemaTags: true, Anonymous: true,
		Mapper: func(t reflect.Type) *jsonschema.Schema {
			if own, ok := types[t]; ok {
				return new(*own) // to which each field adds what it means
			}
			return nil
		},
	}
	all := r.Reflect(s.of)
	all.Title = s.title
	if err := s.documented(all); err != nil {
		return nil, err
	}
	b, err := json.MarshalIndent(all, "", " ")
	return append(b, '\n'), err
}

// valid returns a func that says what the schema finds wrong with a file.
func (s schema) valid(t *testing.T) func(text string) error {
	t.Helper()
	doc, err := validator.UnmarshalJSON(strings.NewReader(s.text))
	if err != nil {
		t.Fatal(err)
	}
	c := validator.NewCompiler()
	if err := c.AddResource(s.file, doc); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	return func(text string) error {
		var tree any
		if err := (strict.Source{Text: []byte(text)}).Decode(&tree, 1<<24); err != nil {
			t.Fatal(err)
		}
		return compiled.Validate(tree)
	}
}
