package schematest

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/invopop/jsonschema"

	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/scenario"
	"github.com/seed90641741/spillway/cmd/spillway/internal/policyconf"
	"github.com/seed90641741/spillway/sim"
)

var scenarios = schema{
	title: "Spillway scenario", without: `only:"proxy"`, of: &scenario.File{}, file: "lab/scenario/schema.json", text: scenario.Schema,
	types: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[time.Duration]():   pattern(`^([0-9.]+(ns|us|µs|ms|s|m|h))+$|^0$`, "150ms"),
		reflect.TypeFor[sim.Dist]():        pattern(`^(constant |exponential |uniform |lognormal |pareto |bimodal )?[0-9].*$`, "exponential 10ms"),
		reflect.TypeFor[policyconf.Mode](): oneOf("off", "observe", "enforce"),
	},
}

func TestSchemaOfScenarios(t *testing.T) { scenarios.agrees(t) }

// TestScenarios: the schema knows the scenarios that come along, and finds what is wrong in others.
func TestScenarios(t *testing.T) {
	valid := scenarios.valid(t)
	all, err := filepath.Glob(internal + "lab/scenario/builtin/*.yaml")
	if err != nil || len(all) < 2 {
		t.Fatal(err, all)
	}
	for _, name := range all {
		if err := valid(read(t, name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	small := read(t, internal+"lab/scenario/testdata/small.yaml")
	if err := valid(small); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{
		"name: a\n",
		strings.Replace(small, "rate: 10", "rte: 10", 1),
		strings.Replace(small, "rate: 10", "rate: ten", 1),
		strings.Replace(small, "1s", "one second", 1),
		strings.Replace(small, "to: db", "to: db, throttle: {mode: on}", 1),
	} {
		if bad == small || valid(bad) == nil {
			t.Errorf("valid:\n%s", bad)
		}
	}
}
