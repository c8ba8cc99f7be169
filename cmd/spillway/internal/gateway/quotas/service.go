package quotas

import (
	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/accounts"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/collector"
	"github.com/seed90641741/spillway/quota"
)

// A Service is what "spillway quota" serves to Envoys. Its quota is in the Quotas of package admin's Levels, and its
// customers are in its Customers.
type Service struct {
	Quota    string `json:"quota"`    // its domain
	Address  string `json:"address"`  // for Envoys
	Envoys   int    `json:"envoys"`   // with a stream
	Listed   int    `json:"listed"`   // buckets of listed customers
	Unlisted int    `json:"unlisted"` // buckets of all others
	Reports  uint64 `json:"reports"`  // of buckets, since the start
	Overflow uint64 `json:"overflow"` // of these, reports of buckets without a place
	Invalid  uint64 `json:"invalid"`  // streams and messages that were rejected
	// Calls are the requests that Envoys admitted and rejected, by class, since the start.
	Calls [spillway.Criticalities]quota.ClassStats `json:"calls"`
}

// Asked returns how many requests there were since the start.
func (q *Service) Asked() (n uint64) {
	for _, c := range q.Calls {
		n += c.AdmittedTotal + c.RejectedTotal
	}
	return n
}

// Counts returns the requests since the start: those that Envoys admitted, as served, and rejected. A process without a
// service, which is nil, has those of its totals.
func (q *Service) Counts(t *collector.Totals) collector.Counts {
	c := t.Counts()
	if q == nil {
		return c
	}
	var served, rejected collector.Classes
	for class, n := range q.Calls {
		served[class], rejected[class] = n.AdmittedTotal, n.RejectedTotal
	}
	c.Offered += q.Asked()
	c.Ended[accounts.Served.String()], c.Ended[accounts.Rejected.String()] = served, rejected
	return c
}
