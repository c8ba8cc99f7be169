package main

import "time"

// Time is virtual: the time since the start of a run.
type Time = time.Duration

const (
	ms  = time.Millisecond
	sec = time.Second
)

// An event happens at a time. Events with equal times happen in the order of
// scheduling, so that a run depends on its seed only.
type event struct {
	at   Time
	kind kind
	r    *Request
	f    func(at Time)
}

// kind is the type of an event. Events of requests need no func, which saves an
// allocation for each.
type kind uint8

const (
	call     kind = iota // f
	body                 // the body of r is complete
	finish               // the service of r ends
	leave                // the client of r leaves
	expire               // the timer of r, see [Process.Timer]
	deadline             // of r, which runs
)

// agenda is a heap of events. Four children per node are faster than two for
// entries of this size. The events are beside it: moving pointers around has a
// cost for the garbage collector.
type agenda struct {
	heap   []entry
	order  uint64
	events []event
	unused []int32 // places in events
}

// entry is the place of an event in an agenda.
type entry struct {
	at    Time
	order uint64
	event int32
}

// before orders events.
func (e *entry) before(o *entry) bool {
	return e.at < o.at || e.at == o.at && e.order < o.order
}

func (a *agenda) add(e event) {
	a.order++
	a.rise(entry{e.at, a.order, a.keep(e)})
}

// keep stores an event and returns where.
func (a *agenda) keep(e event) int32 {
	n := len(a.unused) - 1
	if n < 0 {
		a.events = append(a.events, e)
		return int32(len(a.events) - 1)
	}
	place := a.unused[n]
	a.unused = a.unused[:n]
	a.events[place] = e
	return place
}

// rise adds e.
func (a *agenda) rise(e entry) {
	a.heap = append(a.heap, e)
	i := len(a.heap) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(&a.heap[parent]) {
			break
		}
		a.heap[i] = a.heap[parent]
		i = parent
	}
	a.heap[i] = e
}

// next takes the earliest event out. The agenda must not be empty.
func (a *agenda) next() event {
	place := a.heap[0].event
	first := a.events[place]
	a.events[place] = event{}
	a.unused = append(a.unused, place)
	n := len(a.heap) - 1
	e := a.heap[n]
	a.heap = a.heap[:n]
	if n > 0 {
		a.sink(e)
	}
	return first
}

// sink puts e in place of the root.
func (a *agenda) sink(e entry) {
	i, n := 0, len(a.heap)
	for {
		least := 4*i + 1
		if least >= n {
			break
		}
		for c := least + 1; c < min(least+4, n); c++ {
			if a.heap[c].before(&a.heap[least]) {
				least = c
			}
		}
		if !a.heap[least].before(&e) {
			break
		}
		a.heap[i] = a.heap[least]
		i = least
	}
	a.heap[i] = e
}
