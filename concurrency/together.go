package concurrency

import (
	"cmp"
	"time"
)

// The limit of all keys is for keys that wait for the same thing. While it is at work the others are apart from it, and each has its own limit if
// there is evidence for one. The first probe begins with all keys that may be alike, and begins again if others join. After it, when latency has fallen
// as well as grown, the keys that differ are apart. Then each second a key that is certainly on the wrong side changes it. Keys that come meanwhile are one
// key, until that limit ends or until nothing has limited them for ten seconds: together they may overload what none of them does by itself.

// together is what is known of the keys that wait for the same thing.
type together struct {
	shared   *limit        // of the keys that are not apart
	divided  bool          // some keys are apart, or within that limit
	slope    float64       // by which latency grows in the keys that wait for the same thing
	first    bool          // these were not reviewed after the first probe yet
	reviewAt time.Duration // when that is looked at again
}

// blame begins a probe on the evidence of a key: of the keys that may wait for the same thing, or if that is not known,
// of this one. If a probe of all found no queue, the evidence of the next ten seconds counts for the key alone.
func (l *Limiter) blame(k *key) {
	switch most := l.steepest(); {
	case k.overdue && l.shared.overdue:
		if l.shared.state == Open && l.shared.maySearch(float64(l.working)) {
			l.suspectAll(0)
		} else {
			k.restart()
		}
	case most.n == 0 || l.shared.state != Open || l.shared.wasClear(float64(l.working)):
		k.suspect()
	default:
		l.suspectAll(most.slope())
	}
}

// steepest returns how latency grows where requests wait the most: in one key, or in the keys with too few requests to
// judge, taken together. It is zero if that is not known.
func (l *Limiter) steepest() (most growth) {
	var few growth
	for k := range l.units {
		g := k.growth(l.shared.generation)
		switch {
		case k.apart:
		case !g.sure(g.slope()):
			few.add(g)
		case g.xy > most.xy:
			most = g
		}
	}
	if few.sure(few.slope()) && few.xy > most.xy {
		most = few
	}
	return most
}

// suspectAll begins a probe of all keys, without the idle ones and those whose latency certainly grows otherwise.
func (l *Limiter) suspectAll(slope float64) {
	l.begin(slope)
	var all, tried, seconds float64
	keys, apart := 0, false
	for k := range l.units {
		g, n := k.growth(l.shared.generation), k.points()
		all += n
		switch {
		case k.apart:
		case g.differs(slope), l.shared.overdue && !k.overdue:
			l.part(k)
			apart = true
		case n > 0:
			keys++
			tried += n
			seconds += float64(n * cmp.Or(k.latency.least(), l.shared.latency.least()))
			k.base, k.known, k.overdue = k.latency.least(), false, false
			k.open()
		}
	}
	s := l.shared
	if apart {
		s.generation += 2
	}
	_, rate := s.measured()
	if s.ended < round/2 {
		rate = max(rate, s.rate) // the round has just begun
	}
	s.rate, s.base = rate*tried/max(all, 1), seconds/max(tried, 1)
	s.probe(float64(s.working), s.rate, s.rate*s.base)
	if keys > 1 {
		s.before.calls = 2 * round // its base latency is for all
	}
}

// review finds out after the first probe, and then each second, which keys wait for the same thing: those whose latency grows as
// it did in that probe. What is known of keys within the limit stays as it was then: while a limit holds, little varies, and
// chance decides.
func (l *Limiter) review() {
	l.reviewAt = l.at + lasting
	first, slope := l.first, l.slope
	if first {
		most := l.steepest()
		slope = most.slope()
	}
	if slope == 0 {
		return
	}
	l.slope, l.first = slope, false
	l.join(slope)
	if l.acquit(slope, first) {
		l.shared.probed = l.at - memory
	}
	for k := range l.units {
		g := k.growth(l.shared.generation)
		k.known = !k.apart && g.sure(slope)
	}
}

// acquit sets apart the keys that probably do not wait for the same thing as the others, and reports whether there are any. Keys
// with too few requests to judge are taken together. With fewer than 8 they are apart after the first probe, and stay where they
// are later.
func (l *Limiter) acquit(slope float64, first bool) (acquitted bool) {
	known := 0
	for k := range l.units {
		if !k.apart && k.points() > 0 {
			known++
		}
	}
	if known < 2 {
		return false
	}
	few := l.few(slope, false)
	for k := range l.units {
		if g := l.judge(k, slope, few); !k.apart && (first && g.n < group || g.differs(slope)) {
			l.part(k)
			acquitted = true
		}
	}
	return acquitted
}

// few returns how latency grows in the keys with too few requests to judge, taken together: of the keys that are apart, or of the others.
func (l *Limiter) few(slope float64, apart bool) (of growth) {
	for k := range l.units {
		if g := k.growth(l.shared.generation); k.apart == apart && !g.sure(slope) {
			of.add(g)
		}
	}
	return of
}

// judge returns by which growth a key is judged: that of the few keys if it has too few requests; without requests, only if these certainly
// wait for the same thing.
func (l *Limiter) judge(k *key, slope float64, few growth) growth {
	g := k.growth(l.shared.generation)
	if g.sure(slope) || g.n == 0 && !few.same(slope) {
		return g
	}
	return few
}

// begin sets apart the keys without requests when a first probe begins: what they wait for is not known when they come again.
// Latency grows by slope for each request, as far as is known.
func (l *Limiter) begin(slope float64) {
	l.divided, l.first, l.slope, l.reviewAt = true, true, slope, 0
	for k := range l.units {
		k.keepUp(l.shared.generation)
		if !k.apart && k.working == 0 && k.points() == 0 {
			l.part(k)
		}
	}
}

func (l *Limiter) part(k *key) {
	k.apart = true
	l.shared.working -= k.working
}

// gather joins keys during a first probe, which begins again with them: their requests would be in its base latency.
func (l *Limiter) gather() {
	l.reviewAt = l.at + brief
	if s := l.shared; l.join(l.slope) && float64(s.working) > s.window {
		s.empty(s.window)
	}
}

// join takes the keys that certainly wait for the same thing into the limit, which stays at work and is measured again. Those with
// too few requests to judge are taken together.
func (l *Limiter) join(slope float64) (joined bool) {
	few := l.few(slope, true)
	for k := range l.units {
		if g := l.judge(k, slope, few); k.apart && g.same(slope) {
			k.apart, joined = false, true
			k.open()
			l.shared.working += k.working
			l.shared.probed = l.at - memory
		}
	}
	return joined
}

// rejoin begins to look for one queue of all keys again.
func (l *Limiter) rejoin() {
	l.divided, l.first = false, false
	l.shared.generation += 2
	for i := range l.keys {
		if k := &l.keys[i]; k.late {
			l.release(k)
		}
	}
	for k := range l.units {
		if k.known = false; k.apart {
			k.apart = false
			l.shared.working += k.working
		}
	}
}
