package config

import (
	"strings"
	"testing"

	"github.com/seed90641741/spillway/tune"
)

const tuned = `mode: enforce
listeners:
  - address: 127.0.0.1:8000
clusters:
  - name: web
    endpoints: [127.0.0.1:8080]
    rate_limit: {rate: 1000, burst_seconds: 1}
    tune: {mode: enforce, latency: 50ms, rejections: 0.05, min: 50, rule: proportional, reaction: 1s}
`

func TestTuning(t *testing.T) {
	c, ok := parse(t, tuned).Clusters[0].Tuning()
	if !ok || c.Limit != 1000 || c.Min != 50 || !c.Enforce || c.Rule != tune.Proportional || len(c.Signals) != 2 ||
		c.Signals[0].Target != 50 || c.Signals[1].Target != 5 {
		t.Errorf("tuning: %+v, %v", c, ok)
	}
	inFlight := strings.NewReplacer("rate_limit: {rate: 1000, burst_seconds: 1}", "inflight: {max_in_flight: 20}", "mode: enforce, latency", "limit: in_flight, latency", "min: 50", "min: 5").Replace(tuned)
	if c, ok = parse(t, inFlight).Clusters[0].Tuning(); !ok || c.Limit != 20 || !c.Whole || c.Enforce {
		t.Errorf("in flight: %+v, %v", c, ok)
	}
	if _, ok := parse(t, strings.Replace(tuned, "mode: enforce, latency", "mode: off, latency", 1)).Clusters[0].Tuning(); ok {
		t.Error("what is off is tuned")
	}
	if _, ok := parse(t, small).Clusters[0].Tuning(); ok {
		t.Error("what is not given is tuned")
	}
}

func TestWrongTuning(t *testing.T) {
	for _, row := range []struct{ from, to, want string }{
		{"latency: 50ms, rejections: 0.05, ", "", "proxy.yaml:8: clusters[0].tune has nothing to go by"},
		{"latency: 50ms", "latency: -1s", "clusters[0].tune.latency is -1s, must not be negative"},
		{"rejections: 0.05", "rejections: 5", "clusters[0].tune.rejections is 5, must be 0 to less than 1"},
		{"rate_limit: {rate: 1000, burst_seconds: 1}", "rate_limit: {}", "clusters[0].tune.limit is rate, but rate_limit.rate is not given"},
		{"rate_limit: {rate: 1000, burst_seconds: 1}", "rate_limit: {rate: 1000, mode: observe}", "clusters[0].tune.mode is enforce, but rate_limit.mode is observe"},
		{"min: 50", "min: 2000", "clusters[0].tune.min is 2000, must be above 0 and at most 1000"},
		{"min: 50", "min: 0.5", "clusters[0].tune.min is 0.5, with which BurstSeconds is"},
		{"min: 50", "max: 1e7", "clusters[0].tune.max is 1e+07, with which Rate is"},
		{"rule: proportional", "rule: pid", `clusters[0].tune.rule is "pid", must be aimd or proportional`},
		{"reaction: 1s", "reaction: 2h", "clusters[0].tune.reaction is 2h0m0s, must be 1ms to 1h0m0s"},
		{"reaction: 1s", "max_step: 2", "clusters[0].tune.max_step is 2, must be above 0 and at most 0.9"},
		{"reaction: 1s", "limit: cpu", `clusters[0].tune.limit is "cpu", must be rate or in_flight`},
	} {
		_, err := Parse("proxy.yaml", []byte(strings.Replace(tuned, row.from, row.to, 1)))
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("error %v, want %q", err, row.want)
		}
	}
}

// TestWrongBounds: a user who sets one bound gets no error about the default of the other,
// and of two errors the same one is reported each time.
func TestWrongBounds(t *testing.T) {
	for _, row := range []struct{ rate, burst, bounds, want string }{
		{"5", "1", "max: 1e7", "clusters[0].tune.max is 1e+07, with which Rate is 1e+07"},
		{"5", "1", "max: 20", "clusters[0].tune needs min: by default it is 0.5, with which BurstSeconds is 1, must be at least 1/Rate (2)"},
		{"5", "1", "min: 0.5, max: 1e7", "clusters[0].tune.min is 0.5, with which BurstSeconds is 1"},
		{"5e5", "1", "min: 100", "clusters[0].tune needs max: by default it is 5e+06, with which Rate is 5e+06, must be"},
		{"5e5", "1", "max: 2e6", "clusters[0].tune.max is 2e+06, with which Rate is"},
	} {
		text := strings.NewReplacer("rate: 1000", "rate: "+row.rate, "burst_seconds: 1", "burst_seconds: "+row.burst, "min: 50", row.bounds).Replace(tuned)
		for range 8 {
			if _, err := Parse("proxy.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%s: error %v, want %q", row.bounds, err, row.want)
				break
			}
		}
	}
}

const tunedMongo = `mode: enforce
mongo:
  - address: 127.0.0.1:27018
    endpoints: [127.0.0.1:27017]
    parameters: {ingressRequestRateLimiterEnabled: true, ingressRequestAdmissionRatePerSec: 1000}
    tune: {mode: enforce, latency: 20ms}
`

func TestMongoTuning(t *testing.T) {
	c, ok := parse(t, tunedMongo).Mongo[0].Tuning()
	if !ok || c.Limit != 1000 || !c.Enforce || c.Whole || len(c.Signals) != 1 {
		t.Errorf("tuning: %+v, %v", c, ok)
	}
	for _, row := range []struct{ from, to, want string }{
		{"latency: 20ms", "latency: 20ms, limit: in_flight", "mongo[0].tune.limit is in_flight, must be rate here"},
		{"Enabled: true", "Enabled: false", "mongo[0].tune is given, but parameters enable no limit of requests"},
		{"mode: enforce\n", "mode: observe\n", "mongo[0].tune.mode is enforce, but request_mode is observe"},
		{"latency: 20ms", "latency: 20ms, max: 2e6", "mongo[0].tune.max is 2e+06, with which Rate is"},
	} {
		_, err := Parse("proxy.yaml", []byte(strings.Replace(tunedMongo, row.from, row.to, 1)))
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("error %v, want %q", err, row.want)
		}
	}
}
