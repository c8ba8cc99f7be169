package concurrency

import "time"

// key is a limit with its name. The first one is for all names without a place, and for the late keys.
type key struct {
	*limit
	name   string
	flight flight
	active int           // of these, what is at work, as counted
	parked int           // the same
	late   bool          // came while the limit of all keys was at work: one of the others, whose limit counts for it
	placed time.Duration // when it got its place
	apart  bool          // does not wait for what all keys do, while their limit is at work
	held   int           // tickets that are not settled
	max    int           // as in MaxByKey; 0: none
	full   time.Duration // max counts as reached before then
	used   time.Duration // when one last was handed out
}

// slot returns the place of a key, and advances the clock, that key and what all share.
func (l *Limiter) slot(now time.Time, name string) int {
	l.advance(now)
	slot := l.latest
	if slot == 0 || l.keys[slot].name != name {
		if slot != 0 {
			l.other = l.at
		}
		slot = l.find(name)
		l.latest = slot
	}
	l.moveOn(slot)
	return slot
}

// find returns the place of a name, which gets one if there is a free one.
func (l *Limiter) find(name string) int {
	slot, ok := l.index[name]
	if !ok {
		if slot = l.vacant(l.at); slot > 0 {
			l.put(slot, l.newKey(name))
		}
	}
	return slot
}

// group returns the key whose limit counts for a key: itself, or the others.
func (l *Limiter) group(k *key) *key {
	if k.late {
		return &l.keys[0]
	}
	return k
}

// units yields the keys whose limits count.
func (l *Limiter) units(yield func(*key) bool) {
	for i := range l.keys {
		if k := &l.keys[i]; !k.late && !yield(k) {
			return
		}
	}
}

// release gives a late key its own limit, with new evidence: when the limit of all keys has ended, or after a memory when nothing limits
// the others.
func (l *Limiter) release(k *key) {
	k.advance(l.at)
	k.late, k.apart, k.known, k.hung = false, l.keys[0].apart, false, l.at
	k.restart()
	k.working = k.active
	l.keys[0].working -= k.active
}

// moveOn advances what all share, the others and a key; each second all keys, so that what hangs there is parked.
func (l *Limiter) moveOn(slot int) {
	l.shared.advance(l.at)
	if l.at-l.swept < lasting {
		k := &l.keys[slot]
		if k.late {
			l.keys[0].advance(l.at)
		}
		l.age(k)
		return
	}
	l.swept = l.at
	for i := range l.keys {
		k := &l.keys[i]
		if l.age(k); k.late && l.at-k.placed > memory && l.rule(k).state == Open {
			l.release(k)
		}
	}
}

// age advances a key.
func (l *Limiter) age(k *key) {
	silence := l.at - k.at
	k.advance(l.at)
	if l.at-k.flight.since >= lasting { // parkAfter is no less
		k.flight.turn(l.at, l.group(k).parkAfter(), silence)
		l.count(k)
	}
}

// newKey returns a key without requests. One that comes while the limit of all keys is at work is late.
func (l *Limiter) newKey(name string) key {
	k := key{limit: newLimit(l.at, false), name: name, placed: l.at, used: l.at, late: l.shared.state != Open}
	k.flight.since, k.flight.before = l.at, l.at
	return k
}
