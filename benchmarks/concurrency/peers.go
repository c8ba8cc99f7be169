package main

// A rule is a limit on requests in flight that learns from how long they took.
type rule interface {
	// limit returns how many requests may be in flight.
	limit() int
	// learn is told of each request that has ended.
	learn(s sample)
}

// A sample is a request that has ended.
type sample struct {
	at, took Time
	inFlight int  // when it began, itself included
	served   bool // its client did not leave
	full     bool // as many were in flight as may be when it ended
}

// peer rejects what arrives while as many requests are in flight as a rule allows.
type peer struct {
	none
	rule
	inFlight int
}

// newPeer returns a maker of peers with one rule each.
func newPeer(rule func(p *Process) rule) Maker {
	return func(p *Process) Algorithm { return &peer{none: none{p}, rule: rule(p)} }
}

func (a *peer) Arrive(r *Request) {
	if a.inFlight >= a.limit() {
		a.p.Reject(r)
		return
	}
	a.inFlight++
	r.Slot = a.inFlight
	a.p.Run(r)
}

func (a *peer) Finish(r *Request, served bool) {
	s := sample{
		at: a.p.Now(), took: a.p.Now() - r.Admitted, inFlight: r.Slot.(int),
		served: served, full: a.inFlight >= a.limit(),
	}
	a.inFlight--
	a.learn(s)
}

// Explain returns what -trace shows.
func (a *peer) Explain() []level {
	return []level{{"in flight", float64(a.inFlight)}, {"window", float64(a.limit())}}
}

// An ewma is the mean of its first 10 values, and from then on moves by 2/(age+1) of
// the way to each new one. Netflix and failsafe-go use the same.
type ewma struct {
	age, value float64
	n          int
}

func (e *ewma) add(x float64) float64 {
	const warmup = 10
	if e.n < warmup {
		e.n++
		e.value += (x - e.value) / float64(e.n)
	} else {
		e.value += (x - e.value) * 2 / (e.age + 1)
	}
	return e.value
}
