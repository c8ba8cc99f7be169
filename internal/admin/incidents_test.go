package admin

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin/incidents"
	"github.com/seed90641741/spillway/internal/admin/quotastats"
	"github.com/seed90641741/spillway/internal/admin/runbook"
	"github.com/seed90641741/spillway/internal/telemetry"
)

// TestIncidentsAreLogged: what the banner and the notices say has a line when it begins and one when
// it ends, whatever the number of requests.
func TestIncidentsAreLogged(t *testing.T) {
	var out bytes.Buffer
	s := newScene(spillway.ModeEnforce)
	s.sampler.incidents = incidents.New(slog.New(slog.NewTextHandler(&out, nil)))
	lines := func(seconds int) []string {
		out.Reset()
		s.seconds(seconds)
		return strings.Split(strings.TrimSpace(out.String()), "\n")
	}
	if got := lines(30); got[0] != "" {
		t.Errorf("lines while all is well: %q", got)
	}
	s.proxy.levels.Clusters[0].Endpoints[1].Down = "connection refused"
	if got := lines(60); len(got) != 1 || !strings.Contains(got[0], `level=WARN msg="incident began" kind=endpoints_down subject=web what="1 of 2 endpoints of web is down." detail="10.0.0.2:8080 (connection refused). The others serve." runbook=https://`) {
		t.Errorf("an endpoint is down: %q", got)
	}
	s.fails = 1
	if got := lines(60); len(got) != 1 || !strings.Contains(got[0], `kind=upstream_fails what="The upstream fails." detail=`) || !strings.Contains(got[0], " do=") {
		t.Errorf("the upstream fails: %q", got)
	}
	s.fails, s.proxy.levels.Clusters[0].Endpoints[1].Down = 0, ""
	if got := lines(60); len(got) != 2 || !strings.Contains(got[0], `level=INFO msg="incident ended" kind=endpoints_down subject=web after=1m59s`) || !strings.Contains(got[1], `msg="incident ended" kind=upstream_fails`) {
		t.Errorf("the end: %q", got)
	}
	s.proxy.levels.Notices = []Notice{{Kind: telemetry.NoticeReload, Headline: "The last reload failed."}}
	if got := lines(30); got[0] != "" {
		t.Errorf("a reload has a second line: %q", got)
	}
}

// TestEachNoticeHasAnEntry: the line of each kind of notice has a link.
func TestEachNoticeHasAnEntry(t *testing.T) {
	for _, kind := range telemetry.Notices {
		if e, ok := runbook.Condition(kind); !ok || e.Section == "" {
			t.Errorf("%s has no section of the runbook", kind)
		}
	}
}

// TestQuotaNotices: servers that are away, a missing leader and different limits are notices while they
// last.
func TestQuotaNotices(t *testing.T) {
	s := newScene(spillway.ModeEnforce)
	kinds := func(change func(q *quotastats.Stats)) string {
		q := quotastats.Stats{Name: "web", Syncs: 100, Tasks: 2}
		if len(s.proxy.levels.Quotas) > 0 {
			q = s.proxy.levels.Quotas[0]
		}
		change(&q)
		s.proxy.levels.Quotas = []quotastats.Stats{q}
		s.second()
		var all []string
		for _, n := range s.sampler.state.Load().Notices {
			if n.Subject != "web" || !strings.HasSuffix(n.Headline, ".") {
				t.Errorf("%+v", n)
			}
			all = append(all, n.Kind)
		}
		return strings.Join(all, " ")
	}
	for i, step := range []struct {
		change func(q *quotastats.Stats)
		want   string
	}{
		{func(*quotastats.Stats) {}, ""},
		{func(q *quotastats.Stats) { q.Syncs += 5 }, ""},
		{func(q *quotastats.Stats) { q.Syncs += 5; q.Errors++ }, ""}, // one error among answers
		{func(q *quotastats.Stats) { q.Conflict = true }, "quota_conflict"},
		{func(q *quotastats.Stats) { q.Conflict, q.Lost = false, true }, "quota_leader"},
		{func(q *quotastats.Stats) { q.Lost = false }, ""},
	} {
		if got := kinds(step.change); got != step.want {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
	got := ""
	for range meanTicks + 1 {
		got = kinds(func(q *quotastats.Stats) { q.Errors += 5 })
	}
	if got != "quota_away" {
		t.Errorf("ten seconds of errors: %q", got)
	}
	if got := kinds(func(q *quotastats.Stats) { q.Syncs += 5 }); got != "" {
		t.Errorf("the servers answer again: %q", got)
	}
}
