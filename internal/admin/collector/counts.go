package collector

import (
	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin/accounts"
)

// Counts are the requests since the start, for the JSON of a state. "spillway top" makes rates of them over one window
// for many processes. They only rise, so a reader that finds a lower number knows that the process was started again.
type Counts struct {
	Offered uint64             `json:"offered"`
	Ended   map[string]Classes `json:"ended"`        // by account: served, late, failed, rejected, and so on
	Would   Classes            `json:"would_reject"` // where gates only observe
}

// Classes has a count for each criticality, from SHEDDABLE to CRITICAL_PLUS.
type Classes = [spillway.Criticalities]uint64

// Counts returns the requests of these totals.
func (t *Totals) Counts() Counts {
	c := Counts{Offered: t.Accounts.Offered, Ended: make(map[string]Classes, accounts.Count)}
	for a, ended := range t.Accounts.Ended {
		c.Ended[accounts.Account(a).String()] = ended
	}
	for class := range c.Would {
		for side := range t.Would { // a request may meet a gate of either
			c.Would[class] = max(c.Would[class], t.Would[side][class])
		}
	}
	return c
}
