package main

// A rule is a limit on requests in flight that learns from how long they took.
type rule interface {
	// limit returns how many requests may be in flight.
	limit() int
	// learn is called after each request.
	learn(s sample)
}

// A sample is a request that has ended.
type sample struct {
	at, took Time
	inFlight int  // when it began, itself included
	served   bool // false if the client had left
	full     bool // the limit was reached when it ended
}

// peer rejects requests that arrive while a rule's limit is reached.
type peer struct {
	none
	rule
	inFlight int
}

// newPeer returns a generator of peers with a new rule for each process.
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
	return []level{{"in flight", float64(a.inFlight)}, {"limit", float64(a.limit())}}
}

// An ewma is the mean of the first 10 values. From then on each value has the
// weight 2/(age+1). Netflix and failsafe-go use the same formula.
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
