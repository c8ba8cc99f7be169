package config

import (
	"slices"
	"testing"

	"github.com/seed90641741/spillway"
)

// TestWithMode changes the mode of a proxy whose gates have modes of their own.
func TestWithMode(t *testing.T) {
	c, err := Parse("x.yaml", []byte(`
mode: enforce
listeners: [{address: "127.0.0.1:0"}]
clusters:
  - name: shop
    endpoints: ["127.0.0.1:1"]
    shed: {mode: enforce}
    rate_limit: {rate: 1, mode: observe}
    throttle: {mode: "off"}
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		mode                 spillway.Mode
		shed, rate, inflight spillway.Mode
		kept                 []string
	}{
		{
			spillway.ModeEnforce, spillway.ModeEnforce, spillway.ModeObserve, spillway.ModeEnforce,
			[]string{"clusters[shop].rate_limit.mode: observe", "clusters[shop].throttle.mode: off"},
		},
		{
			spillway.ModeObserve, spillway.ModeObserve, spillway.ModeObserve, spillway.ModeObserve,
			[]string{"clusters[shop].throttle.mode: off"},
		},
		{spillway.ModeOff, spillway.ModeOff, spillway.ModeOff, spillway.ModeOff, nil},
	} {
		with, kept := c.WithMode(row.mode)
		x := with.Clusters[0]
		if with.modeOf(x.Shed.Mode) != row.shed || with.modeOf(x.RateLimit.Mode) != row.rate ||
			with.modeOf(x.Inflight.Mode) != row.inflight || with.modeOf(x.Throttle.Mode) != spillway.ModeOff {
			t.Errorf("%v: shed %v, rate limit %v, in flight %v, throttle %v", row.mode, with.modeOf(x.Shed.Mode), with.modeOf(x.RateLimit.Mode),
				with.modeOf(x.Inflight.Mode), with.modeOf(x.Throttle.Mode))
		}
		if !slices.Equal(kept, row.kept) {
			t.Errorf("%v: kept %q, want %q", row.mode, kept, row.kept)
		}
	}
	if c.Clusters[0].Shed.Mode != "enforce" || c.Mode != "enforce" {
		t.Error("the configuration itself has changed")
	}
}
