// Package quotastats says how quotas stand that many tasks share, and what a service of quotas does.
package quotastats

import (
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/quota"
)

// Stats says how a quota stands that is shared with other proxies.
type Stats struct {
	Name      string        `json:"name"`   // of the cluster or listener
	Syncs     uint64        `json:"syncs"`  // exchanges of reports and levels that succeeded
	Errors    uint64        `json:"errors"` // that failed
	Fenced    uint64        `json:"fenced"` // that came too late, as another task led
	Leader    bool          `json:"leader"`
	Tasks     int           `json:"tasks"` // 0 without levels
	Age       time.Duration `json:"age"`   // of the levels; negative without any
	Grace     time.Duration `json:"grace"` // until the limits are divided by tasks; 0 where they are
	Conflict  bool          `json:"conflict"`
	Customers []Customer    `json:"customers"` // the listed ones with most debt, 20 at most
	// Lost says that the servers answer, but no leader has sent levels for longer than a task uses its last share.
	Lost bool `json:"lost"`
}

// A Customer is the level of a listed customer with demand, in all proxies.
type Customer struct {
	Customer string        `json:"customer"`
	Rate     float64       `json:"rate"`
	Debt     time.Duration `json:"debt"`     // at this rate
	Marginal int           `json:"marginal"` // class that is not admitted in full; -1: all are
}

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
