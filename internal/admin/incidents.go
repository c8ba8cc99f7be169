package admin

import (
	"cmp"

	"github.com/seed90641741/spillway/internal/admin/incidents"
	"github.com/seed90641741/spillway/internal/admin/runbook"
	"github.com/seed90641741/spillway/internal/telemetry"
)

// conditionsOf returns what the log of incidents gets from a State: what the banner says, and each
// notice. A reload that failed has a separate line, and so have servers of a quota that do not answer.
func conditionsOf(st *State) (all []incidents.Condition) {
	add := func(kind, subject, headline, text, do string) {
		if e, ok := st.condition(kind); ok && kind != telemetry.NoticeReload && kind != telemetry.NoticeQuotaAway {
			all = append(all, incidents.Condition{Kind: kind, Subject: subject, Headline: headline, Text: text, Do: cmp.Or(do, e.Do), Link: e.Link()})
		}
	}
	if last := &st.Last; last.lost()+last.gone()+last.Rejected.sum() > 0 || last.Ended.sum() == 0 {
		// What the banner says is about ten seconds: more may be over than what it was.
		add(st.Verdict.Kind, "", st.Verdict.Headline, st.Verdict.Text, st.Verdict.Do)
	}
	for _, n := range st.Notices {
		add(n.Kind, n.Subject, n.Headline, n.Text, "")
	}
	return all
}

// condition returns what to do about a condition.
func (s *State) condition(kind string) (runbook.Entry, bool) {
	if s.Program == library {
		return runbook.LibraryCondition(kind)
	}
	return runbook.Condition(kind)
}
