package admin

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin/accounts"
	"github.com/seed90641741/spillway/internal/admin/textpage"
)

// TestAccountsAreFigures: the figures and the page come from the accounts, and events do not count
// requests again.
func TestAccountsAreFigures(t *testing.T) {
	s := newScene(spillway.ModeEnforce)
	book := s.sampler.with.Collector.Accounts()
	s.sampler.tick(s.now)
	for a := range accounts.Count {
		for range 10 * (a + 1) {
			book.Begin()
			book.End(accounts.End{Account: accounts.Account(a), Reason: accounts.NoRoute, Criticality: spillway.Sheddable})
		}
	}
	for range 5 {
		book.Begin() // and goes on
	}
	s.sampler.with.Collector.Observe(rejected("shed", spillway.ModeEnforce, errQueueFull))
	s.sampler.with.Collector.Observe(spillway.Event{Policy: "retry", Outcome: spillway.OutcomeServed})
	s.now = s.now.Add(time.Second)
	s.sampler.tick(s.now)
	st := s.sampler.state.Load()
	f := &st.Last
	if f.Goodput != 10 || f.Late != 20 || f.Failed != 30 || f.Rejected[0] != 40 || f.RejectedUpstream != 50 || f.GoneWaiting != 60 || f.GoneSent != 70 || f.Offered != 285 || f.Ended.sum() != 280 {
		t.Errorf("%+v", f)
	}
	if st.Verdict.Headline != "Clients give up before they are answered." || !strings.Contains(st.Verdict.Text, "given up by clients") {
		t.Errorf("%+v", st.Verdict)
	}
	rows := make(map[string]float64)
	for _, r := range st.Reasons {
		rows[r.Reason] += r.Total.sum()
	}
	if rows["client_gone_waiting"] != 60 || rows["client_gone_sent"] != 70 || rows["no_route"] != 40 {
		t.Errorf("%v", rows)
	}
	text := textpage.Aligned(func(w io.Writer) { st.Totals.Accounts.Write(w) })
	for _, want := range []string{"client_gone_sent     70", "in progress          5", "offered              285", "no_route       40"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
