package concurrency

import "time"

// A key is a limit with its name, and what it has in flight. The first one is for all names without a place of their own.
type key struct {
	*limit
	name   string
	flight flight
	parked int           // requests that are in flight for so long that they do not count, as counted
	held   int           // tickets that are not settled
	max    int           // the operator's bound on requests in flight; 0 is none
	full   time.Duration // max counts as reached before then
	used   time.Duration // when a ticket was last handed out
}

// newKey returns a key without requests.
func (l *Limiter) newKey(name string) key {
	return key{limit: newLimit(l.at, false), name: name, used: l.at, flight: flight{since: l.at, before: l.at}}
}

// slot returns the place of a key, and advances the clock, that key and the limit of all keys.
func (l *Limiter) slot(now time.Time, name string) int {
	l.advance(now)
	slot := l.latest
	if slot == 0 || l.keys[slot].name != name {
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

// moveOn advances a key and the limit of all keys; each second all keys, so that what hangs there is parked.
func (l *Limiter) moveOn(slot int) {
	l.all.advance(l.at)
	if l.at-l.swept < lasting {
		l.age(&l.keys[slot])
		return
	}
	l.swept = l.at
	for i := range l.keys {
		l.age(&l.keys[i])
	}
}

// age advances a key.
func (l *Limiter) age(k *key) {
	silence := l.at - k.at
	k.advance(l.at)
	if l.at-k.flight.since >= lasting { // parkAfter is no less
		k.flight.turn(l.at, k.parkAfter(), silence)
		l.count(k)
	}
}

// count takes in how many requests of a key are at work now.
func (l *Limiter) count(k *key) {
	by, parked := k.flight.working()-k.working, k.flight.parked-k.parked
	k.working += by
	l.all.working += by
	k.parked += parked
	l.parked += parked
}
