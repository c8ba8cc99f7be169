package spillxds_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/spillxds"
)

// alone returns a Cluster of a control plane that is not there.
func alone(t testing.TB, c spillxds.Config) *spillxds.Cluster {
	c.Bootstrap = must(spillxds.ParseBootstrap([]byte(`{"xds_servers":[{"server_uri":"passthrough:///nobody","channel_creds":[{"type":"insecure"}]}]}`)))
	c.Reports = spillxds.Never
	client := must(spillxds.New(c))
	t.Cleanup(func() { client.Close() })
	return must(client.Cluster(key("users")))
}

// canned answers all requests with the same.
type canned struct{ http.Response }

func (c *canned) RoundTrip(*http.Request) (*http.Response, error) {
	resp := c.Response
	return &resp, nil
}

var ok = &canned{http.Response{StatusCode: http.StatusOK, Body: http.NoBody}}

func works(context.Context, *egress.Attempt) error { return nil }

func TestCountingAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	here := spillxds.Locality{Zone: "here"}
	users := alone(t, spillxds.Config{Locality: func(string) spillxds.Locality { return here }})
	rt := users.RoundTripper(ok)
	req := must(http.NewRequest(http.MethodGet, "http://127.0.0.1/", nil))
	limited, bare := must(egress.New(users.Egress(egress.Config{}))), must(egress.New(egress.Config{}))
	allocations := func(f func()) float64 { f(); return testing.AllocsPerRun(1000, f) }
	if n := allocations(func() { l := users.Load(here); l.Begin(); l.End(true) }); n != 0 {
		t.Errorf("counting allocates %v times", n)
	}
	if n := allocations(func() { rt.RoundTrip(req) }); n > 1 { // the answer of the base
		t.Errorf("the RoundTripper allocates %v times", n)
	}
	own := allocations(func() { limited.Do(t.Context(), spillway.Call{}, works) })
	base := allocations(func() { bare.Do(t.Context(), spillway.Call{}, works) })
	if own != base {
		t.Errorf("a call with the limits of a cluster allocates %v times, without %v", own, base)
	}
}

func BenchmarkCount(b *testing.B) {
	l := alone(b, spillxds.Config{}).Load(spillxds.Locality{})
	b.ReportAllocs()
	for b.Loop() {
		l.Begin()
		l.End(true)
	}
}

func BenchmarkRoundTripper(b *testing.B) {
	req := must(http.NewRequest(http.MethodGet, "http://127.0.0.1/", nil))
	for name, rt := range map[string]http.RoundTripper{"base": ok, "counted": alone(b, spillxds.Config{}).RoundTripper(ok)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				rt.RoundTrip(req)
			}
		})
	}
}

// BenchmarkCall is a call through egress with local limits and with limits of
// a cluster.
func BenchmarkCall(b *testing.B) {
	users := alone(b, spillxds.Config{})
	for name, c := range map[string]egress.Config{"own": {}, "cluster": users.Egress(egress.Config{})} {
		b.Run(name, func(b *testing.B) {
			client := must(egress.New(c))
			b.ReportAllocs()
			for b.Loop() {
				client.Do(b.Context(), spillway.Call{}, works)
			}
		})
	}
}

// BenchmarkOrca is what a report adds to a call.
func BenchmarkOrca(b *testing.B) {
	gates := must(ingress.New(ingress.Config{}))
	defer gates.Close()
	orca := must(spillxds.NewOrca(spillxds.OrcaConfig{Server: gates}))
	defer orca.Close()
	b.ReportAllocs()
	for b.Loop() {
		orca.Report(time.Now())
	}
}
