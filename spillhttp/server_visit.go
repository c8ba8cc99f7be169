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

// A servedRequest holds everything that the Handler allocates for a request, in one object. It is
// never reused, because the next handler may keep any part of it.
type servedRequest struct {
	serving.Context // this makes it the context of the request

	response response1
	request  http.Request
}

func (h *servedRequest) Value(key any) any {
	switch key {
	case final.Key{}:
		return &h.response.final
	case chargeKey{}:
		return h
	}
	return h.Context.Value(key)
}

// chargeKey is the context key that finds the servedRequest of a request.
type chargeKey struct{}

// Charge adds cost to what the request of ctx costs the quota of its customer. A negative cost is
// given back. Call it when the handler knows what the request costs. The request itself costs
// quota.Config.Cost, 1 by default, when it is admitted; cost is added to that. The unit is that of
// the rates of the quota.
//
// ctx is the context of the request, or one derived from it. Several charges add up. Charge does
// nothing after the handler has returned, for a request that is exempt or has no quota, and for a
// cost that is not finite. It allocates nothing and is safe for concurrent use.
func Charge(ctx context.Context, cost float64) {
	if h, ok := ctx.Value(chargeKey{}).(*servedRequest); ok && h.response.late.Begin() {
		h.response.slot.Charge(h.response.clock.Now(), cost)
	}
}

// A servedWithBody is a servedRequest with a body. It has its own slot, because the body may still
// be read after the handler has returned.
type servedWithBody struct {
	servedRequest
	body requestBody
	slot ingress.Slot
}

// visitOf returns the objects with which the next handler serves a request. Their context carries
// the deadline of the call, its class if it has a label, its task, its degradation level, and the
// mark that outgoing calls set. If the request has a body, visitOf moves the slot out of p.
func (h *Handler) visitOf(w http.ResponseWriter, r *http.Request, a *arrival, p *ingress.Slot) *servedRequest {
	var x *servedRequest
	body := r.Body
	if streamed(r) {
		s := &servedWithBody{slot: *p} // the slot is not shared with other goroutines yet
		*p = ingress.Slot{}
		s.body = requestBody{r.Body, pausing{slot: &s.slot, clock: &h.clock}}
		p, x, body = &s.slot, &s.servedRequest, &s.body
	} else {
		x = new(servedRequest)
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

// restated returns the header with which the next handler gets r, if it differs from that of r:
// class and level are as they were trusted. It returns nil if they do not change.
func restated(r *http.Request, a *arrival) http.Header {
	f, changed := a.Restate()
	if !changed {
		return nil
	}
	h := maps.Clone(r.Header)
	importanceNames.Put(h, &f)
	return h
}
