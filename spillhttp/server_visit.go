package spillhttp

import (
	"context"
	"maps"
	"net/http"

	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/claims"
	"github.com/seed90641741/spillway/internal/final"
	"github.com/seed90641741/spillway/internal/serving"
)

// importanceNames are the headers that say how much a request matters.
var importanceNames = claims.Names{Criticality: headerCriticality, Level: headerLevel, Progress: headerProgress, Baggage: headerBaggage}

// An heir holds everything that the Handler allocates for a request, in one object. It is
// never reused, as the next handler may keep any part of it.
type heir struct {
	serving.Context // which makes it the context of the request

	response response1
	request  http.Request
}

func (h *heir) Value(key any) any {
	switch key {
	case final.Key{}:
		return &h.response.final
	case chargeKey{}:
		return h
	}
	return h.Context.Value(key)
}

// chargeKey is the key by which a context finds the request that it belongs to.
type chargeKey struct{}

// Charge adds cost to what the request of ctx costs the quota of its customer, or gives it
// back where cost is negative. Call it when the handler knows what the request costs. The
// request itself costs quota.Config.Cost, 1 by default, when it is admitted; cost is what
// comes on top. The unit is that of the rates of the quota.
//
// ctx is the context of the request, or one derived from it. Several charges add up. Charge does nothing
// once the handler has returned, for a request that is exempt, without a quota, and for a cost that
// is not finite. It allocates nothing and is safe for concurrent use.
func Charge(ctx context.Context, cost float64) {
	if h, ok := ctx.Value(chargeKey{}).(*heir); ok && h.response.late.Begin() {
		h.response.slot.Charge(h.response.clock.Now(), cost)
	}
}

// A sending is what a request with a body is served as. Its slot is its own, as the
// body may still be read when the handler has returned.
type sending struct {
	heir
	body requestBody
	slot ingress.Slot
}

// visitOf returns what a request is served with: its context carries the deadline of the call, its
// class if labelled, its task, its level of degradation, and the mark that outgoing calls set. It takes over
// the slot if it has another one.
func (h *Handler) visitOf(w http.ResponseWriter, r *http.Request, a *arrival, p *ingress.Slot) *heir {
	var x *heir
	body := r.Body
	if streamed(r) {
		s := &sending{slot: *p} // nobody else knows of it yet
		*p = ingress.Slot{}
		s.body = requestBody{r.Body, pausing{slot: &s.slot, clock: &h.clock}}
		p, x, body = &s.slot, &s.heir, &s.body
	} else {
		x = new(heir)
	}
	x.request = *r.WithContext(x)
	x.request.Body = body
	if header := restated(r, a); header != nil {
		x.request.Header = header
	}
	x.Begin(r.Context(), a, h.ingress.Degradation(a.Call.Criticality))
	x.response.ResponseWriter, x.response.pausing = w, pausing{slot: p, clock: &h.clock}
	x.response.final.Repeated = a.Call.Attempt > 0
	return x
}

// restated returns the header with which r is to be served, which says what was believed of its class and level,
// or nil if it already does.
func restated(r *http.Request, a *arrival) http.Header {
	f, changed := a.Restate()
	if !changed {
		return nil
	}
	h := maps.Clone(r.Header)
	importanceNames.Put(h, &f)
	return h
}
