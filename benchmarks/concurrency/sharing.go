package main

import (
	"container/heap"
	"slices"
)

// sharing makes a Backend serve all requests at the same time with a few
// processors: n requests on c processors each progress at the rate min(1, c/n).
type sharing struct {
	processors float64
	progress   float64 // seconds of service that each request got since the start
	last       Time    // of progress
	active     activities
	version    int // of the schedule; events of older versions are void
}

// An activity is a request in service. It ends when progress reaches ends.
type activity struct {
	ends float64
	r    *Request
}

// newSharing returns a backend without a queue that slows down when it is loaded.
func newSharing(processors int) *Backend {
	b := noQueue()
	b.sharing = &sharing{processors: float64(processors)}
	return b
}

// rate is the progress of each request per second.
func (s *sharing) rate() float64 { return min(1, s.processors/float64(len(s.active))) }

func (s *sharing) advance(t Time) {
	if t > s.last && len(s.active) > 0 {
		s.progress += (t - s.last).Seconds() * s.rate()
	}
	s.last = max(s.last, t)
}

// share starts the service of a request.
func (p *Process) share(s *sharing, r *Request, took Time) {
	s.advance(p.now)
	heap.Push(&s.active, activity{s.progress + took.Seconds(), r})
	p.schedule(s)
}

// unshare ends the service of a request before its time.
func (p *Process) unshare(s *sharing, r *Request) {
	s.advance(p.now)
	heap.Remove(&s.active, slices.IndexFunc(s.active, func(a activity) bool { return a.r == r }))
	p.schedule(s)
}

// schedule plans the end of the next request.
func (p *Process) schedule(s *sharing) {
	s.version++
	if len(s.active) == 0 {
		return
	}
	version := s.version
	rest := max(0, s.active[0].ends-s.progress) / s.rate()
	p.at(s.last+Time(rest*float64(sec)), func(at Time) {
		if s.version != version {
			return
		}
		s.advance(at)
		r := heap.Pop(&s.active).(activity).r
		p.schedule(s)
		p.finish(r)
	})
}

// activities are a heap: the request that ends first is at the root.
type activities []activity

func (a activities) Len() int           { return len(a) }
func (a activities) Less(i, j int) bool { return a[i].ends < a[j].ends }
func (a activities) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *activities) Push(x any)        { *a = append(*a, x.(activity)) }
func (a *activities) Pop() any {
	old := *a
	last := old[len(old)-1]
	*a = old[:len(old)-1]
	return last
}
