package concurrency

import "time"

// A key is a named limit, with its requests in flight. The first key, [Others], is for all names
// without their own entry in the table.
type key struct {
	*limit
	name   string
	flight flight
	parked int           // requests that are parked, as last added to Limiter.parked
	held   int           // tickets that are not settled yet
	max    int           // operator's limit of requests in flight; 0 means none
	full   time.Duration // max counts as reached until this time on the clock
	used   time.Duration // when a ticket was last handed out
}

// newKey returns a key without requests, which is not in the table yet.
func (l *Limiter) newKey(name string) key {
	return key{limit: newLimit(l.at, false), name: name, used: l.at, flight: flight{since: l.at, before: l.at}}
}

// slot returns the index in the table of the key for a name. It also advances the clock, that key
// and the limit of all keys to the time now.
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

// find returns the index of a name in the table. A new name gets its own entry if one is available,
// and otherwise shares entry 0.
func (l *Limiter) find(name string) int {
	slot, ok := l.index[name]
	if !ok {
		if slot = l.vacant(l.at); slot > 0 {
			l.put(slot, l.newKey(name))
		}
	}
	return slot
}

// moveOn advances a key and the limit of all keys to the time of the clock. Once a second it
// advances all keys, so that requests that hang in unused keys are parked, too.
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

// age advances a key to the time of the clock, and parks its old requests.
func (l *Limiter) age(k *key) {
	silence := l.at - k.at
	k.advance(l.at)
	if l.at-k.flight.since >= lasting { // parkAfter returns at least lasting
		k.flight.turn(l.at, k.parkAfter(), silence)
		l.count(k)
	}
}

// count updates the totals of working and parked requests after a change of k.flight.
func (l *Limiter) count(k *key) {
	by, parked := k.flight.working()-k.working, k.flight.parked-k.parked
	k.working += by
	l.all.working += by
	k.parked += parked
	l.parked += parked
}
