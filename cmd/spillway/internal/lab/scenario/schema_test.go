package scenario

import (
	"flag"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/invopop/jsonschema"

	"github.com/seed90641741/spillway/cmd/spillway/internal/policyconf"
	"github.com/seed90641741/spillway/cmd/spillway/internal/strict/stricttest"
	"github.com/seed90641741/spillway/sim"
)

var update = flag.Bool("update", false, "write schema.json anew")

var schema = stricttest.Schema{
	Title: "Spillway scenario", Without: `only:"proxy"`, Of: &File{}, File: "schema.json", Text: Schema,
	Types: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[time.Duration]():   stricttest.Pattern(`^([0-9.]+(ns|us|µs|ms|s|m|h))+$|^0$`, "150ms"),
		reflect.TypeFor[sim.Dist]():        stricttest.Pattern(`^(constant |exponential |uniform |lognormal |pareto |bimodal )?[0-9].*$`, "exponential 10ms"),
		reflect.TypeFor[policyconf.Mode](): stricttest.Words("off", "observe", "enforce"),
	},
}

func TestSchemaIsThatOfTheFile(t *testing.T) { schema.Agrees(t, *update) }

func TestSchemaKnowsGoodFiles(t *testing.T) {
	valid := schema.Valid(t)
	all, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if err := valid(string(s.source.Text)); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
	for _, bad := range []string{
		"name: a\n",
		strings.Replace(small, "rate: 10", "rte: 10", 1),
		strings.Replace(small, "rate: 10", "rate: ten", 1),
		strings.Replace(small, "1s", "one second", 1),
		strings.Replace(small, "to: db", "to: db, throttle: {mode: on}", 1),
	} {
		if valid(bad) == nil {
			t.Errorf("valid:\n%s", bad)
		}
	}
}
