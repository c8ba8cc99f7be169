package admin

import (
	_ "embed"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin/accounts"
	"github.com/seed90641741/spillway/internal/admin/decisions"
	"github.com/seed90641741/spillway/internal/admin/settings"
	"github.com/seed90641741/spillway/internal/telemetry"
	"github.com/seed90641741/spillway/retry"
)

// configured are the settings of a configuration of the proxy, with its defaults.
//
//go:embed testdata/settings.txt
var configured string

// configuredScene returns a scene whose proxy has the settings above.
func configuredScene(t *testing.T) *scene {
	t.Helper()
	s := newScene(spillway.ModeEnforce)
	for line := range strings.Lines(configured) {
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		s.proxy.settings = append(s.proxy.settings, settings.Setting{Field: field, Value: value})
	}
	return s
}

// occur lets each reason occur at a listener and its cluster, and returns what the page shows.
func (s *scene) occur(listener, cluster string) []Reason {
	book, observe := s.sampler.with.Collector.Accounts(), s.sampler.with.Decisions.Before(s.sampler.with.Collector).Observe
	call := spillway.Call{Key: cluster, Criticality: spillway.Critical, Deadline: noon.Add(time.Second)}
	for _, policy := range telemetry.Policies {
		for _, reason := range telemetry.ReasonsOf(policy) {
			err := &spillway.RejectedError{Policy: policy, Reason: reason, Level: 3, Limit: 2, Unit: "requests"}
			if reason == spillway.ReasonRateLimit {
				err.Level, err.Unmeasured = 0, true
			}
			e := rejected(policy, spillway.ModeEnforce, err)
			e.Time, e.Call = noon, call
			observe(e)
		}
	}
	failures := []error{nil}
	for _, reason := range []retry.Reason{retry.ReasonBudget, retry.ReasonAttempts, retry.ReasonRetryAfter, retry.ReasonDeadline} {
		failures = append(failures, &retry.Error{Reason: reason, Attempts: 2})
	}
	for i := range quorum {
		for _, o := range []spillway.Outcome{spillway.OutcomeFailed, spillway.OutcomeTimedOut, spillway.OutcomeOverloaded, spillway.OutcomeOverQuota} {
			observe(spillway.Event{Time: noon, Policy: "retry", Call: call, Outcome: o, Err: failures[i%len(failures)], Latency: time.Second})
		}
	}
	at := book.At(accounts.Place{Listener: listener, Cluster: cluster})
	end := func(a accounts.Account, reason accounts.Reason) {
		book.Begin()
		book.End(accounts.End{Account: a, Reason: reason, Criticality: spillway.Critical, At: at})
	}
	for _, a := range goneAccounts {
		end(a, 0)
	}
	for reason := accounts.MaxRequests; int(reason) < accounts.Reasons; reason++ {
		end(accounts.Rejected, reason)
	}
	s.sampler.tick(noon.Add(time.Second))
	return s.sampler.state.Load().Reasons
}

// TestEachReasonSaysWhatToDo: for each reason the page says what to do, the section of the runbook,
// and the setting of the cluster or listener that had it, with its value.
func TestEachReasonSaysWhatToDo(t *testing.T) {
	for _, place := range []struct {
		listener, cluster string
		fields            map[string]string // by policy and reason, the first field and its value
	}{
		{"main", "web", map[string]string{
			"ratelimit rate_limit": "clusters[web].rate_limit.rate: 30", "quota quota": "clusters[web].quota.default_limit.rate: 5",
			"shed queue_full": "clusters[web].shed.max_wait: 50ms", "shed max_wait": "routes[0].timeout: 2s",
			"shed higher_class": "routes[0].criticality", "shed deadline": "routes[0].timeout: 2s", "shed utilization": "clusters[web].shed.load",
			"shed fair_share": "clusters[web].quota.default_limit.rate: 5", "throttle throttle": "clusters[web].throttle.k: 3",
			"inflight max_in_flight": "clusters[web].inflight.max_in_flight: 64", "retry deadline": "routes[0].timeout: 2s",
			"retry failed": "clusters[web].endpoints[0]: 10.0.0.1:80", "retry overloaded": "clusters[web].shed.max_wait: 50ms",
			"retry over_quota": "clusters[web].quota.default_limit.rate: 5", "retry budget": "clusters[web].retry.ratio: 0.2",
			"retry attempts": "clusters[web].retry.max_attempts: 4", "retry retry_after": "clusters[web].retry.max_retry_after: 1s",
			"retry no_time": "routes[0].timeout: 2s", "proxy client_gone_waiting": "clusters[web].shed.max_wait: 50ms",
			"proxy client_gone_sent": "routes[0].timeout: 2s", "proxy max_requests": "listeners[main].max_requests: 700",
			"proxy no_route": "routes", "proxy draining": "drain_timeout: 30s", "proxy bad_request": "listeners[main].max_body_bytes",
		}},
		{"main", "night", map[string]string{
			"batch queue_full": "clusters[night].batch.queue: 3", "batch max_wait": "clusters[night].batch.max_wait: 9s",
			"proxy client_gone_waiting": "clusters[night].batch.max_wait: 9s",
		}},
		{"db", "db", map[string]string{
			"ratelimit rate_limit": "mongo[db].parameters.ingressRequestAdmissionRatePerSec: 7", "quota quota": "mongo[db].quota.default_limit.rate: 6",
			"shed queue_full": "mongo[db].shed.max_wait", "shed max_wait": "mongo[db].shed.max_wait", "shed higher_class": "mongo[db].classes",
			"shed utilization": "mongo[db].shed.load", "shed fair_share": "mongo[db].quota.default_limit.rate: 6",
			"retry failed": "mongo[db].endpoints[0]: 10.0.0.9:27017", "retry overloaded": "mongo[db].shed", "retry over_quota": "mongo[db].quota.default_limit.rate: 6",
			"retry budget": "mongo[db].retry.budget: 11", "retry attempts": "mongo[db].retry.max_retries",
			"retry retry_after": "mongo[db].retry.max_retry_after", "proxy client_gone_waiting": "mongo[db].shed.max_wait", "proxy draining": "drain_timeout: 30s",
		}},
	} {
		t.Run(place.cluster, func(t *testing.T) {
			found := make(map[string]bool)
			for _, r := range configuredScene(t).occur(place.listener, place.cluster) {
				name := r.Policy + " " + r.Reason
				found[name] = true
				if !strings.HasSuffix(r.Do, ".") || !strings.Contains(r.Link, "/docs/runbook.md#") {
					t.Errorf("%s: %q, %s", name, r.Do, r.Link)
				}
				want, ok := place.fields[name]
				if !ok {
					if place.cluster == "web" && r.Policy != "batch" {
						t.Errorf("nothing is known of %s: %+v", name, r.Settings)
					}
					continue
				}
				if len(r.Settings) == 0 || strings.TrimSuffix(r.Settings[0].Name+": "+r.Settings[0].Value, ": ") != want {
					t.Errorf("%s: %+v, want %s", name, r.Settings, want)
				}
				limit := map[bool]float64{false: 2}[r.Policy == "throttle"] // which measures a share
				if r.Reason == "rate_limit" {                               // the rate of arrivals is not measured
					if r.Measured != nil {
						t.Errorf("%s: measured %+v", name, r.Measured)
					}
				} else if r.Outcome == "rejected" && r.Policy != decisions.ByProxy && (r.Measured == nil || r.Measured.Value != 3 || r.Measured.Limit != limit) {
					t.Errorf("%s: measured %+v", name, r.Measured)
				}
			}
			for name := range place.fields {
				if !found[name] {
					t.Errorf("%s did not occur", name)
				}
			}
		})
	}
}

// TestSettingsOfSeveralClusters: a reason shows the settings of the clusters that had it, and of no other.
func TestSettingsOfSeveralClusters(t *testing.T) {
	s := configuredScene(t)
	s.occur("main", "web")
	all := s.occur("db", "db")
	i := slices.IndexFunc(all, func(r Reason) bool { return r.Reason == "rate_limit" })
	want := []settings.Field{{Name: "mongo[db].parameters.ingressRequestAdmissionRatePerSec", Value: "7"}, {Name: "clusters[web].rate_limit.rate", Value: "30"}}
	if i < 0 || !slices.Equal(all[i].Settings, want) {
		t.Errorf("%+v, want %v", all, want)
	}
	i = slices.IndexFunc(all, func(r Reason) bool { return r.Reason == "budget" })
	if m := all[i].Measured; m == nil || m.Value != 100 || m.Limit != 100 {
		t.Errorf("the budget is %+v", m)
	}
	i = slices.IndexFunc(all, func(r Reason) bool { return r.Outcome == "late" })
	if m := all[i].Measured; i < 0 || m == nil || m.Limit < 900 || m.Limit > 1100 {
		t.Errorf("late is %+v", m)
	}
}
