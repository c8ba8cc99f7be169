package spillrlqs

import (
	"context"
	"errors"
	"time"

	descriptor "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/seed90641741/spillway"
)

const (
	maxDescriptors = 64      // of one request
	maxHits        = 1 << 20 // that one request may count as
)

// limitService is the service of the older protocol.
type limitService struct {
	ratelimit.UnimplementedRateLimitServiceServer
	s *Server
}

// hit is what a request asks of one customer.
type hit struct {
	call   spillway.Call
	cost   float64
	ticket spillway.Ticket
	err    error
}

// ShouldRateLimit answers from the lease of this server.
func (l limitService) ShouldRateLimit(_ context.Context, r *ratelimit.RateLimitRequest) (*ratelimit.RateLimitResponse, error) {
	if err := l.s.domain(r.GetDomain()); err != nil {
		return nil, err
	}
	if n := len(r.GetDescriptors()); n < 1 || n > maxDescriptors {
		return nil, l.s.reject("%d descriptors, must be 1 to %d", n, maxDescriptors)
	}
	hits, of, err := l.s.hits(r)
	if err != nil {
		return nil, err
	}
	over := l.s.decide(time.Now(), hits)
	m := &ratelimit.RateLimitResponse{OverallCode: ratelimit.RateLimitResponse_OK}
	if over {
		m.OverallCode = ratelimit.RateLimitResponse_OVER_LIMIT
	}
	for _, i := range of {
		m.Statuses = append(m.Statuses, statusOf(hits, i))
	}
	l.s.count(func(st *Stats) {
		calls := &st.Calls[hits[0].call.Criticality.Index()]
		if over {
			st.OverLimitTotal++
			calls.RejectedTotal++
		} else {
			st.OKTotal++
			calls.AdmittedTotal++
		}
	})
	return m, nil
}

// hits returns what a request asks of each customer, and which of these a descriptor
// belongs to, -1 for none. Descriptors without a customer count only if no other has one: then
// the customer is "".
func (s *Server) hits(r *ratelimit.RateLimitRequest) (hits []hit, of []int, err error) {
	of = make([]int, len(r.GetDescriptors()))
	unnamed := true
	for i, d := range r.GetDescriptors() {
		name, class, named := s.named(d)
		cost, err := costOf(s, r, d)
		if err != nil {
			return nil, nil, err
		}
		if of[i] = -1; !named {
			continue
		}
		unnamed = false
		for k := range hits {
			if hits[k].call.Customer == name {
				of[i] = k
				hits[k].cost = max(hits[k].cost, cost)
			}
		}
		if of[i] < 0 {
			of[i] = len(hits)
			hits = append(hits, hit{call: spillway.Call{Customer: name, Criticality: class}, cost: cost})
		}
	}
	if unnamed {
		cost, err := costOf(s, r, r.GetDescriptors()[0])
		if err != nil {
			return nil, nil, err
		}
		_, class, _ := s.named(r.GetDescriptors()[0])
		hits = []hit{{call: spillway.Call{Criticality: class}, cost: cost}}
		clear(of)
	}
	return hits, of, nil
}

// named returns the customer and the class that a descriptor names, and whether it names a
// customer.
func (s *Server) named(d *descriptor.RateLimitDescriptor) (name string, class spillway.Criticality, named bool) {
	cfg := s.cfg.Load()
	class = spillway.Critical
	for _, e := range d.GetEntries() {
		switch e.GetKey() {
		case cfg.CustomerKey:
			name, named = e.GetValue(), true
		case cfg.CriticalityKey:
			if c, err := spillway.ParseCriticality(e.GetValue()); err == nil {
				class = c
			}
		}
	}
	return name, class, named
}

// costOf returns what a descriptor counts as.
func costOf(s *Server, r *ratelimit.RateLimitRequest, d *descriptor.RateLimitDescriptor) (float64, error) {
	hits := uint64(r.GetHitsAddend())
	if hits == 0 {
		hits = 1
	}
	if d.GetHitsAddend() != nil {
		hits = d.GetHitsAddend().GetValue()
	}
	switch {
	case d.GetIsNegativeHits():
		return 0, s.reject("is_negative_hits is not supported")
	case hits > maxHits:
		return 0, s.reject("hits_addend is %d, must be at most %d", hits, maxHits)
	}
	return float64(hits), nil
}

// decide admits a request with all of its customers, or charges none.
func (s *Server) decide(now time.Time, hits []hit) (over bool) {
	for i := range hits {
		h := &hits[i]
		h.ticket, h.err = s.gate.Admit(now, h.call)
		over = over || h.err != nil
	}
	for i := range hits {
		h := &hits[i]
		switch {
		case h.err != nil:
		case over:
			h.ticket.Settle(now, spillway.OutcomeNotStarted)
		default:
			s.gate.Charge(now, &h.ticket, h.cost-1)
			h.ticket.Settle(now, spillway.OutcomeServed)
		}
	}
	return over
}

// statusOf returns the status of a descriptor.
func statusOf(hits []hit, i int) *ratelimit.RateLimitResponse_DescriptorStatus {
	st := &ratelimit.RateLimitResponse_DescriptorStatus{Code: ratelimit.RateLimitResponse_OK}
	if i < 0 || hits[i].err == nil {
		return st
	}
	st.Code = ratelimit.RateLimitResponse_OVER_LIMIT
	if e, ok := errors.AsType[*spillway.RejectedError](hits[i].err); ok {
		st.DurationUntilReset = durationpb.New(e.RetryAfter)
	}
	return st
}
