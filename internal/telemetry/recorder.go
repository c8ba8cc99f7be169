package telemetry

import (
	"fmt"
	"sync/atomic"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/frequent"
)

// Defaults of the tables of an observer.
const (
	DefaultRoutes    = 20
	DefaultCustomers = 10
	DefaultBackends  = 10
	// MaxKeys is the largest size of a table.
	MaxKeys = 64
)

// A Recorder counts everything that the observers of a library report, without latency. It
// is safe for concurrent use and allocates nothing; make one with [NewRecorder].
type Recorder struct {
	Counts

	Retries atomic.Uint64
	hedges  hedges
	// Rejections by key, with the reason as the tag, for customers with the class, too. Nil: nothing is counted.
	routes, customers *frequent.Rows
}

// NewRecorder returns a Recorder with tables of that many entries, or an error that names
// the field that is wrong. Zero means the default, negative no table.
func NewRecorder(routes, customers int) (r *Recorder, err error) {
	r = new(Recorder)
	if r.routes, err = table("MaxRoutes", routes, DefaultRoutes); err != nil {
		return nil, err
	}
	if r.customers, err = table("MaxCustomers", customers, DefaultCustomers); err != nil {
		return nil, err
	}
	return r, nil
}

func table(field string, n, usual int) (*frequent.Rows, error) {
	if n == 0 {
		n = usual
	}
	switch {
	case n < 0:
		return nil, nil //nolint:nilnil // nothing is counted
	case n > MaxKeys:
		return nil, &spillway.FieldError{
			Path: field, Value: n, Allowed: fmt.Sprintf("at most %d, or negative for none", MaxKeys),
		}
	}
	return frequent.NewRows(n, 0), nil
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
		if r.routes != nil {
			r.routes.Add(e.Call.Key, uint8(e.Reason))
		}
		if r.customers != nil && e.Call.Customer != "" {
			r.customers.Add(e.Call.Customer, customerTag(e))
		}
	case !e.Rejected && e.Call.Attempt > 0 && k.Policy() == Policies[retryPolicy]:
		r.Retries.Add(uint64(e.Call.Attempt))
	}
	return k
}

const _ = uint8((int(codes) - int(Rejected)) * spillway.Criticalities) // a tag fits

// customerTag returns the reason and class of an event.
func customerTag(e *spillway.Event) uint8 {
	reason := uint8(e.Reason)
	if Rejected+Code(e.Reason) >= codes {
		reason = uint8(spillway.ReasonNone)
	}
	return reason*spillway.Criticalities + uint8(e.Call.Criticality.Index())
}

// customerLabels returns the labels of a tag.
func customerLabels(tag uint8) []string {
	class := spillway.Criticality(tag%spillway.Criticalities) + spillway.Sheddable
	return []string{class.String(), ReasonLabel(spillway.Reason(tag / spillway.Criticalities))}
}
