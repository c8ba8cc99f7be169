package balance

import (
	"math"
	"slices"
	"time"

	"github.com/seed90641741/spillway"
)

// A Pick is an endpoint that was chosen for one attempt. It must not be copied once
// [Set.Answered] was called.
type Pick struct {
	Index  int // in the endpoints of the Set
	ticket spillway.Ticket
	at     int64
	flight int64 // attempts at the endpoint, without this one
}

// The ranks of endpoints, best first. An endpoint is used only if no endpoint has a
// better rank.
const (
	rankBest    = iota
	rankSkipped // it asked for it, or was ejected, or could not be connected to
	rankTried   // an earlier attempt of the call failed there
	rankUnhealthy
	rankNone // not to be considered
)

// maxDetours is how many endpoints are passed over for their throttle. More would make
// a pick slower for little: it is unlikely that only the ninth has capacity.
const maxDetours = 8

// A view is the state of the endpoints for one call.
type view struct {
	at      int64
	class   int
	tried   []*Endpoint
	passed  [maxDetours]*Endpoint
	detours int
	calm    bool // none is to be skipped
	panics  bool // too many are to be skipped: hints and ejections do not count
	blind   bool // all are unhealthy: health does not count
}

// Pick chooses the endpoint for an attempt of a call of a class, and counts the attempt
// as in flight. Endpoints in tried are used only if there are no others.
// [Set.Answered] and [Endpoint.End] must be called once each.
func (s *Set) Pick(now time.Time, class spillway.Criticality, tried []*Endpoint) (p Pick) {
	if len(s.all) == 1 {
		s.all[0].busy.Add(1)
		return Pick{}
	}
	v := s.look(s.at(now), class, tried)
	s.refresh(v.at)
	call := spillway.Call{Criticality: class}
	first, rank := s.choose(&v)
	for at, next := first, rank; next == rank && v.detours < maxDetours; at, next = s.choose(&v) {
		x := s.all[at]
		ticket, err := x.throttle.Admit(now, call)
		if err == nil {
			return Pick{at, ticket, v.at, x.busy.Add(1) - 1}
		}
		v.passed[v.detours] = x
		v.detours++
	}
	// All reject. Their throttles learn from the outcome all the same.
	x := s.all[first]
	return Pick{first, spillway.Ticket{By: x.throttle, Criticality: class}, v.at, x.busy.Add(1) - 1}
}

func (s *Set) look(at int64, class spillway.Criticality, tried []*Endpoint) view {
	v := view{at: at, class: class.Index(), tried: tried, calm: s.sick.Load() == 0 && s.calm.Load() <= at}
	if v.calm {
		return v
	}
	var n [Ejected + 1]int
	for _, x := range s.all {
		n[x.state(at, v.class)]++
	}
	v.blind = n[Unhealthy] == len(s.all)
	v.panics = float64(n[Available]) < s.config.PanicThreshold/100*float64(n[Available]+n[LeftOut]+n[Ejected])
	return v
}

func (v *view) rank(x *Endpoint) int {
	state := Available
	if !v.calm {
		state = x.state(v.at, v.class)
	}
	switch {
	case slices.Contains(v.passed[:v.detours], x):
		return rankNone
	case state == Unhealthy && !v.blind:
		return rankUnhealthy
	case slices.Contains(v.tried, x):
		return rankTried
	case state.soft() && !v.panics, state == Unreachable:
		return rankSkipped
	}
	return rankBest
}

// choose returns an endpoint of the best rank present, and the rank.
func (s *Set) choose(v *view) (index, rank int) {
	if w := s.weights.Load(); w != nil && !s.config.LeastBusy {
		return s.earliest(v, *w)
	}
	if n := len(s.all); v.calm && v.detours == 0 && len(v.tried) == 0 && !s.config.LeastBusy {
		i := s.random(n)
		j := (i + 1 + s.random(n-1)) % n
		return s.lessBusy(v.at, i, j), rankBest
	}
	return s.scan(v)
}

func (s *Set) random(n int) int { return min(int(s.config.Rand()*float64(n)), n-1) }

// scan returns the less busy one of two endpoints of the best rank, or the least busy
// one of all.
func (s *Set) scan(v *view) (index, rank int) {
	rank = rankNone + 1
	var two [2]int // a sample of the endpoints of the rank
	seen := 0
	for i, x := range s.all {
		r := v.rank(x)
		if r > rank {
			continue
		}
		if r < rank {
			rank, seen = r, 0
		}
		seen++
		switch {
		case seen == 1:
			two[0], two[1] = i, i
		case s.config.LeastBusy:
			two[0] = s.lessBusy(v.at, two[0], i)
			two[1] = two[0]
		default:
			at := seen - 1
			if at > 1 {
				at = s.random(seen)
			}
			if at < 2 {
				two[at] = i
			}
		}
	}
	return s.lessBusy(v.at, two[0], two[1]), rank
}

// lessBusy returns the less busy one of two, either if both are as busy. An endpoint that is
// slower gets the attempt only if it is expected to answer sooner: if the other has as many
// times more in flight than usual.
func (s *Set) lessBusy(at int64, i, j int) int {
	x, y := s.all[i], s.all[j]
	m, n := x.busy.Load(), y.busy.Load()
	a, b := float64(m), float64(n)
	if slower := x.latency.ratio(&y.latency, at); slower != 1 {
		a, b = slower*x.latency.crowd(m), y.latency.crowd(n)
	}
	if b < a || a == b && s.config.Rand() < 0.5 {
		return j
	}
	return i
}

// earliest returns the endpoint of the best rank with the earliest deadline, and moves its
// deadline by what the attempt costs. One that was skipped for long is first once, and not
// until it has caught up.
func (s *Set) earliest(v *view, weights []float64) (index, rank int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rank = rankNone + 1
	for i, x := range s.all {
		r := v.rank(x)
		if r < rank || r == rank && s.deadlines[i] < s.deadlines[index] {
			index, rank = i, r
		}
	}
	s.virtual = max(s.virtual, s.deadlines[index])
	s.deadlines[index] = s.virtual + s.price(index)/weights[index]
	return index, rank
}

// minPrice bounds what an endpoint gains by having less in flight than usual, as after it
// was skipped: it must not be drowned before it shows.
const minPrice = 0.25

// price returns what an attempt costs endpoint i: 1 if it has as much in flight as usual. What
// is usual is measured at its own attempts, so that they cost 1 on average, and that the shares of
// endpoints that are as busy as usual are those of their weights.
func (s *Set) price(i int) float64 {
	busy := float64(s.all[i].busy.Load())
	s.seen[i] = min(s.seen[i]+1, usualPicks)
	s.usual[i] += (busy - s.usual[i]) / s.seen[i]
	p := max(minPrice, (busy+1)/(s.usual[i]+1))
	if s.config.ActiveRequestBias == 1 {
		return p
	}
	return math.Pow(p, s.config.ActiveRequestBias)
}

// usualPicks is over how many picks of an endpoint its attempts in flight are averaged:
// over many round trips, so that an endpoint that gets slow is noticed long before it is
// usual.
const usualPicks = 256

// Elsewhere reports whether there is an endpoint for another attempt at once: one that
// was not tried and is not to be skipped.
func (s *Set) Elsewhere(now time.Time, class spillway.Criticality, tried []*Endpoint) bool {
	at := s.at(now)
	return slices.ContainsFunc(s.all, func(x *Endpoint) bool {
		return x.state(at, class.Index()) == Available && !slices.Contains(tried, x)
	})
}

// Panics reports whether hints and ejections are ignored at the time now, as too many
// endpoints would be skipped, or health checks, as all endpoints fail them.
func (s *Set) Panics(now time.Time) bool {
	v := s.look(s.at(now), spillway.Critical, nil)
	return v.panics || v.blind
}
