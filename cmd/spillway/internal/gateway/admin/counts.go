package admin

import (
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/accounts"
)

// Counts are the requests since the start. "spillway top" makes rates of them over one window for many processes.
// They only rise, so a reader that finds a lower number knows that the process was started again.
type Counts struct {
	Offered uint64                 `json:"offered"`
	Ended   map[string]classCounts `json:"ended"`        // by account: served, late, failed, rejected, and so on
	Would   classCounts            `json:"would_reject"` // where gates only observe
}

// countsOf returns the counts of a sample. A service of quotas has no accounts; what it admits counts as served.
func countsOf(now *sample) Counts {
	c := Counts{Offered: now.totals.Accounts.Offered, Ended: make(map[string]classCounts, accounts.Count)}
	for a, ended := range now.totals.Accounts.Ended {
		c.Ended[accounts.Account(a).String()] = ended
	}
	for class := range c.Would {
		for side := range now.totals.Would { // a request may meet a gate of either
			c.Would[class] = max(c.Would[class], now.totals.Would[side][class])
		}
	}
	if q := now.levels.Service; q != nil {
		var served, rejected classCounts
		for class, n := range q.Calls {
			served[class], rejected[class] = n.AdmittedTotal, n.RejectedTotal
			c.Offered += n.AdmittedTotal + n.RejectedTotal
		}
		c.Ended[accounts.Served.String()], c.Ended[accounts.Rejected.String()] = served, rejected
	}
	return c
}
