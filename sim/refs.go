package sim

import "github.com/seed90641741/spillway/internal/calls"

// A ref refers to a request, or to an attempt of a call, by its place among all of them. What it
// refers to may end before it is needed again: then it has another generation. The zero ref
// refers to nothing.
type ref struct{ id, gen uint32 }

// callOf returns the call of an attempt, nil if the attempt has ended.
func (s *Sim) callOf(r ref) *call {
	if r.gen == 0 || s.calls[r.id].gen != r.gen {
		return nil
	}
	return s.calls[r.id]
}

// requestOf returns a request, nil if it has ended.
func (s *Sim) requestOf(r ref) *request {
	if r.gen == 0 || s.requests[r.id].gen != r.gen {
		return nil
	}
	return s.requests[r.id]
}

// takeCall returns a call that is not in use.
func (s *Sim) takeCall() *call {
	return take(&s.calls, &s.freeCalls, func(r ref) *call { return &call{ref: r} })
}

// freeCall ends a call: what was still to happen to it does not.
func (s *Sim) freeCall(c *call) {
	c.flow, c.parent, c.request = calls.Flow{}, ref{}, nil
	c.gen++
	s.freeCalls = append(s.freeCalls, c)
}

// takeRequest returns a request that is not in use.
func (s *Sim) takeRequest() *request {
	return take(&s.requests, &s.freeRequests, func(r ref) *request { return &request{ref: r} })
}

// freeRequest ends a request: what was still to happen to it does not, and its caller, who may
// not know, has it no more.
func (s *Sim) freeRequest(r *request) {
	*r = request{ref: ref{r.id, r.gen + 1}, calls: r.calls[:0]}
	s.freeRequests = append(s.freeRequests, r)
}

// take takes out the last one that is free. If there is none, it makes one.
func take[T any](all, free *[]*T, fresh func(ref) *T) *T {
	n := len(*free) - 1
	if n < 0 {
		v := fresh(ref{uint32(len(*all)), 1})
		*all = append(*all, v)
		return v
	}
	v := (*free)[n]
	*free = (*free)[:n]
	return v
}
