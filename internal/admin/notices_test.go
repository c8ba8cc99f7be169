package admin

import (
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin/accounts"
	"github.com/seed90641741/spillway/internal/admin/resets"
	"github.com/seed90641741/spillway/internal/telemetry"
)

// TestClockSteps: a step of the clock is a change and a notice, and the time axis goes on.
func TestClockSteps(t *testing.T) {
	s := newScene(spillway.ModeEnforce)
	var off time.Duration
	s.sampler.with.Wall = func(now time.Time) time.Time { return now.Add(off) }
	s.seconds(3)
	off = time.Second // a time server may correct that much
	s.seconds(3)
	if st := s.sampler.state.Load(); len(st.Changes) != 0 || len(st.Notices) != 0 {
		t.Errorf("%+v, %+v", st.Changes, st.Notices)
	}
	off = -time.Hour
	s.second()
	st := s.sampler.state.Load()
	if len(st.Changes) != 1 || !st.Changes[0].Bad || st.Changes[0].T != noon.Unix()+7 || st.Verdict.Headline != "The clock of this host was set back by 1h0m1s." {
		t.Errorf("%+v, %q", st.Changes, st.Verdict)
	}
	if !st.Time.Equal(s.now.Add(-time.Hour)) || st.Last.Time != s.now.Unix() {
		t.Errorf("%v, %d", st.Time, st.Last.Time)
	}
	s.seconds(int(noticeClock / time.Second))
	if st := s.sampler.state.Load(); len(st.Notices) != 0 || len(st.Changes) != 1 {
		t.Errorf("%+v", st.Notices)
	}
}

// TestNotices: a notice is the headline while nothing is lost, and always in the text.
func TestNotices(t *testing.T) {
	s := newScene(spillway.ModeEnforce)
	s.proxy.levels.Notices = []Notice{{telemetry.NoticeLog, "program", "The log cannot be written.", "Make room."}}
	s.proxy.levels.Clusters[0].Endpoints[1].Down = "connection refused"
	s.proxy.levels.Changes = []Change{{At: noon.Add(time.Second), Text: "configuration reloaded"}}
	s.seconds(3)
	st := s.sampler.state.Load()
	if v := st.Verdict; v.Level != "warn" || v.Headline != "1 of 2 endpoints of web is down." || !strings.Contains(v.Text, "10.0.0.2:8080 (connection refused)") || !strings.Contains(v.Text, "Make room.") || strings.Contains(v.Text, v.Headline) {
		t.Errorf("%+v", v)
	}
	if len(st.Changes) != 1 || st.Changes[0].T != noon.Unix()+1 {
		t.Errorf("%+v", st.Changes)
	}
	s.fails = 1
	s.seconds(10)
	if v := s.sampler.state.Load().Verdict; v.Level != "bad" || v.Headline != "The upstream fails." || !strings.Contains(v.Text, "The log cannot be written.") {
		t.Errorf("%+v", v)
	}
	s.sampler.stalled += stall(beat + 5*time.Second)
	s.second()
	if v := s.sampler.state.Load().Verdict; v.Headline != "This process lacks processor time." || !strings.Contains(v.Text, "50 %") {
		t.Errorf("%+v", v)
	}
}

// TestSlowRequests: requests without a deadline that take much longer than usual are no longer well, and the page
// names the route, both latencies, where the requests wait, and what to do.
func TestSlowRequests(t *testing.T) {
	s := newScene(spillway.ModeObserve)
	book := s.sampler.with.Collector.Accounts()
	at := book.At(accounts.Place{Listener: "main", Cluster: "web", Route: "/report"})
	seconds := func(n int, waited, sent time.Duration) *State {
		for range n {
			s.now = s.now.Add(time.Second)
			for range 20 {
				book.Begin()
				book.End(accounts.End{Account: accounts.Served, Criticality: spillway.Critical, At: at, Waited: waited, Sent: sent})
			}
			s.sampler.tick(s.now)
		}
		return s.sampler.state.Load()
	}
	if st := seconds(60, time.Millisecond, 20*time.Millisecond); st.Verdict.Headline != "All is well." {
		t.Fatalf("%+v", st.Verdict)
	}
	for _, row := range []struct {
		waited, sent time.Duration
		says         string
	}{{time.Millisecond, 10 * time.Second, "for the upstream"}, {10 * time.Second, 20 * time.Millisecond, "here, before they are sent"}} {
		st := seconds(15, row.waited, row.sent)
		if v := st.Verdict; v.Level != "warn" || !strings.HasPrefix(v.Headline, "Requests are slow: route /report of web: 1") || !strings.Contains(v.Text, row.says) {
			t.Errorf("%+v", v)
		}
		if len(st.Notices) != 1 || st.Notices[0].Kind != telemetry.NoticeSlow || st.Notices[0].Subject != "web" {
			t.Errorf("%+v", st.Notices)
		}
		if all := conditionsOf(st); len(all) != 1 || !strings.HasSuffix(all[0].Link, "#requests-are-slow") {
			t.Errorf("the log of incidents gets %+v", all)
		}
	}
	if st := seconds(30, time.Millisecond, 20*time.Millisecond); st.Verdict.Headline != "All is well." {
		t.Errorf("%+v", st.Verdict)
	}
}

// TestResets: a listener that resets a connection per second or more is a notice with the reason and what to do, also
// if no request ever came in. Fewer are none, and neither are those of before.
func TestResets(t *testing.T) {
	for name, row := range map[string]struct {
		idle       bool
		reset      resets.Counts // per second
		mongo      bool
		says, text string // the headline, and what the text has
	}{
		"requests arrive":  {false, resets.Counts{ConnectionRate: 9, MaxConnections: 1}, false, "Listener main resets connections: 10/s.", "listeners[main].connection_rate (90 % of them)"},
		"nothing arrives":  {true, resets.Counts{Peers: 1}, false, "Listener main resets connections: 1.0/s.", "listeners[main].peers. The client is not in the networks"},
		"handshakes":       {false, resets.Counts{Overload: 5}, false, "Listener main resets connections: 5.0/s.", "The reason is overload. Connections keep the processors"},
		"drivers":          {true, resets.Counts{MaxConnections: 1300}, true, "Listener main resets connections: 1,300/s.", "mongo[main].max_connections. max_connections are open"},
		"none in a second": {true, resets.Counts{}, false, "No request yet.", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(spillway.ModeEnforce)
			main := &s.proxy.levels.Listeners[0]
			main.Mongo = row.mongo
			if row.idle {
				s.offered = [spillway.Criticalities]int{}
			}
			for range 12 {
				main.RejectedBy = main.RejectedBy.Plus(row.reset)
				s.now = s.now.Add(time.Second)
				if !row.idle {
					s.request(spillway.Critical)
				}
				s.sampler.tick(s.now)
			}
			st := s.sampler.state.Load()
			if v := st.Verdict; v.Headline != row.says || !strings.Contains(v.Text, row.text) || (v.Level == "warn") != (row.text != "") {
				t.Errorf("%+v", v)
			}
			if row.text == "" {
				return
			}
			if len(st.Notices) != 1 || st.Notices[0].Kind != telemetry.NoticeResets || st.Notices[0].Subject != "main" || !strings.Contains(st.Notices[0].Text, row.text) {
				t.Errorf("%+v", st.Notices)
			}
			if all := conditionsOf(st); len(all) != 1 || !strings.HasSuffix(all[0].Link, "#connections-are-reset") {
				t.Errorf("the log of incidents gets %+v", all)
			}
			main.RejectedBy = main.RejectedBy.Plus(resets.Counts{Peers: 9})
			for range meanTicks {
				s.now = s.now.Add(time.Second)
				s.sampler.tick(s.now)
			}
			if st := s.sampler.state.Load(); len(st.Notices) != 0 {
				t.Errorf("9 in 10 s: %+v", st.Notices)
			}
			main.RejectedBy = resets.Counts{} // the listener was started again
			s.now = s.now.Add(time.Second)
			if s.sampler.tick(s.now); len(s.sampler.state.Load().Notices) != 0 {
				t.Error("a listener that was started again has a notice")
			}
		})
	}
}

// TestMongoAway: servers that hang up are named, although nothing is offered any more.
func TestMongoAway(t *testing.T) {
	s := newScene(spillway.ModeEnforce)
	s.seconds(1)
	s.offered = [spillway.Criticalities]int{}
	counts := func(unreachable, left float64) []Count {
		return []Count{
			{Listener: "db", Name: "proxy.connectionsClosed.hung_up", Value: 1},
			{Listener: "db", Name: "proxy.connectionsClosed.unreachable", Value: unreachable},
			{Listener: "other", Name: "proxy.connectionsClosed.left", Value: left},
		}
	}
	s.proxy.levels.Mongo = counts(2, 3)
	s.seconds(12)
	s.proxy.levels.Mongo = counts(3, 9)
	s.sampler.tick(s.now.Add(time.Second))
	if st := s.sampler.state.Load(); len(st.MongoAway) != 1 || st.Verdict.Headline != "No MongoDB server behind db can be used." {
		t.Errorf("%q, %+v", st.MongoAway, st.Verdict)
	}
}
