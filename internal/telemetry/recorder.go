package telemetry

import (
	"fmt"
	"sync/atomic"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/spacesaving"
)

// Defaults of the tables of an observer.
const (
	DefaultRoutes    = 20
	DefaultCustomers = 10
	DefaultBackends  = 10
)

// A Recorder counts everything that the observers of a library report, without latency. It
// is safe for concurrent use and allocates nothing; make one with [NewRecorder].
type Recorder struct {
	Counts

	Retries           atomic.Uint64
	hedges            hedges
	Routes, Customers *spacesaving.Table // rejections with the reason as the tag; nil: not counted
}

// NewRecorder returns a Recorder with tables of that many entries, or an error that names
// the field that is wrong. Zero means the default, negative no table.
func NewRecorder(routes, customers int) (r *Recorder, err error) {
	r = new(Recorder)
	if r.Routes, err = table("Routes", routes, DefaultRoutes); err != nil {
		return nil, err
	}
	if r.Customers, err = table("Customers", customers, DefaultCustomers); err != nil {
		return nil, err
	}
	return r, nil
}

func table(field string, n, usual int) (*spacesaving.Table, error) {
	if n == 0 {
		n = usual
	}
	if n < 0 {
		return nil, nil //nolint:nilnil // there is no table
	}
	t, err := spacesaving.New(n)
	if err != nil {
		return nil, &spillway.FieldError{
			Path: field, Value: n, Allowed: fmt.Sprintf("at most %d, or negative for none", spacesaving.MaxEntries),
		}
	}
	return t, nil
}

// Record counts an event and returns its kind.
func (r *Recorder) Record(e *spillway.Event) Kind {
	if e.Policy == PolicyHedge {
		r.hedges.add(e)
		return KindOf(e)
	}
	k := r.Add(e)
	switch {
	case e.Rejected && e.Mode == spillway.ModeEnforce:
		if r.Routes != nil {
			r.Routes.Add(e.Call.Key, uint8(e.Reason))
		}
		if r.Customers != nil && e.Call.Customer != "" {
			r.Customers.Add(e.Call.Customer, uint8(e.Reason))
		}
	case !e.Rejected && e.Call.Attempt > 0 && k.Policy() == Policies[retryPolicy]:
		r.Retries.Add(uint64(e.Call.Attempt))
	}
	return k
}
