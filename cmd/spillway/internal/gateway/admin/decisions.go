package admin

import (
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/runbook"
)

// topRows is how many rows each top list has on the page.
const topRows = 10

// explained adds to each reason what to do, and what was measured last.
func (s *sampler) explained(all []Reason) []Reason {
	for i := range all {
		r := &all[i]
		e := runbook.Of(r.Policy, r.Reason)
		r.Do, r.Setting, r.Link = e.Do, e.Setting, e.Link()
		if r.Outcome != "rejected" {
			continue
		}
		if d, ok := s.decided.Last(r.Policy, r.Reason, r.Mode); ok && d.Unit != "" {
			r.Measured = &Measured{d.Time, d.Level, d.Limit, d.Unit}
		}
	}
	return all
}
