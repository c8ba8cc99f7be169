package sim

import "github.com/seed90641741/spillway/egress"

// A callRef refers to an attempt of a call, which may end before it is needed again.
type callRef struct {
	call *call
	gen  uint32
}

// get returns the call, nil if there is none or the attempt has ended.
func (t callRef) get() *call {
	if t.call == nil || t.call.gen != t.gen {
		return nil
	}
	return t.call
}

// A requestRef refers to a request, which may end before it is needed again.
type requestRef struct {
	request *request
	gen     uint32
}

// get returns the request, nil if there is none or it has ended.
func (c requestRef) get() *request {
	if c.request == nil || c.request.gen != c.gen {
		return nil
	}
	return c.request
}

// callOf returns the call that an event is about, nil if the event is void.
func (s *Sim) callOf(e *event) *call { return callRef{s.calls[e.id], e.gen}.get() }

// requestOf returns the request that an event is about, nil if the event is void.
func (s *Sim) requestOf(e *event) *request { return requestRef{s.requests[e.id], e.gen}.get() }

// takeCall returns a call that is not in use.
func (s *Sim) takeCall() *call {
	s.begun++
	if len(s.freeCalls) > 0 {
		return taken(&s.freeCalls)
	}
	c := &call{id: uint32(len(s.calls))}
	s.calls = append(s.calls, c)
	return c
}

// freeCall ends a call: what was still to happen to it does not.
func (s *Sim) freeCall(c *call) {
	c.flow, c.parent, c.request = egress.Flow{}, requestRef{}, nil
	c.gen++
	s.freeCalls = append(s.freeCalls, c)
}

// takeRequest returns a request that is not in use.
func (s *Sim) takeRequest() *request {
	if len(s.freeRequests) > 0 {
		r := taken(&s.freeRequests)
		*r = request{id: r.id, gen: r.gen, alive: true}
		return r
	}
	r := &request{id: uint32(len(s.requests)), alive: true}
	s.requests = append(s.requests, r)
	return r
}

// freeRequest ends a request: whatever was still to happen to it does not, and its
// caller, who may not know, has it no more.
func (s *Sim) freeRequest(r *request) {
	r.gen++
	r.alive, r.caller = false, callRef{}
	s.freeRequests = append(s.freeRequests, r)
}
