package main

// none runs every request.
type none struct{ p *Process }

func newNone(p *Process) Algorithm { return none{p} }

func (a none) Arrive(r *Request)   { a.p.Run(r) }
func (none) Finish(*Request, bool) {}
func (none) Leave(*Request)        {}
func (none) Expire(*Request)       {}
func (none) Heartbeat()            {}

// static rejects requests that arrive while the limit is in flight.
type static struct {
	none
	limit, inFlight int
}

func newStatic(limit int) Maker {
	return func(p *Process) Algorithm { return &static{none: none{p}, limit: limit} }
}

func (a *static) Arrive(r *Request) {
	if a.inFlight >= a.limit {
		a.p.Reject(r)
		return
	}
	a.inFlight++
	a.p.Run(r)
}

func (a *static) Finish(*Request, bool) { a.inFlight-- }

// unlimited represents no limit.
const unlimited = 1 << 30

// limits are the static limits of the oracle.
var limits = []int{
	2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 192, 256, 384, 512,
}
