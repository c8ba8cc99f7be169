package admin

import (
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/runbook"
)

// topRows is the number of rows of each top list on the page.
const topRows = 10

// explained adds the recommended action and the last measured value to each reason.
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
