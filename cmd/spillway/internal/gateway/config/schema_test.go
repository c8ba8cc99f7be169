package config

import (
	"flag"
	"reflect"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"

	"github.com/seed90641741/spillway/cmd/spillway/internal/strict/stricttest"
)

var update = flag.Bool("update", false, "write schema.json anew")

var schema = stricttest.Schema{
	Title: "Configuration of spillway proxy", Of: &Config{}, File: "schema.json", Text: Schema,
	Types: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[Mode]():  stricttest.Words("off", "observe", "enforce"),
		reflect.TypeFor[Class](): stricttest.Words("CRITICAL_PLUS", "CRITICAL", "SHEDDABLE_PLUS", "SHEDDABLE"),
	},
}

func TestSchemaIsThatOfConfig(t *testing.T) { schema.Agrees(t, *update) }

func TestSchemaKnowsGoodFiles(t *testing.T) {
	valid := schema.Valid(t)
	for _, good := range []string{small, full} {
		if err := valid(good); err != nil {
			t.Errorf("%v:\n%s", err, good)
		}
	}
	for _, bad := range []string{
		"mode: observe\n",
		strings.Replace(full, "max_requests:", "max_request:", 1),
		strings.Replace(full, "rate: 500", "rate: many", 1),
		strings.Replace(full, "drain_timeout: 10s", "drain_timeout: soon", 1),
		strings.Replace(full, "mode: enforce", "mode: on", 1),
		strings.Replace(full, "boundary: internal", "boundary: inside", 1),
	} {
		if valid(bad) == nil {
			t.Errorf("valid:\n%s", bad)
		}
	}
}
