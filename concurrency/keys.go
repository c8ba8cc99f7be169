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
	came   time.Duration // when it got its place
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

func (l *Limiter) find(name string) int {
	if slot, ok := l.index[name]; ok {
		return slot
	}
	return l.place(name)
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
		if l.age(k); k.late && l.at-k.came > memory && l.rule(k).state == Open {
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

// place finds a place for a new key: a free one, or that of an unused key, or the one of
// all others.
func (l *Limiter) place(name string) int {
	slot := len(l.keys)
	if slot <= l.config.Keys+l.named {
		l.keys = append(l.keys, l.newKey(name))
	} else if slot = l.unused(); slot == 0 {
		return 0
	} else {
		delete(l.index, l.keys[slot].name)
		l.keys[slot] = l.newKey(name)
	}
	l.index[name] = slot
	return slot
}

// newKey returns a key without requests.
func (l *Limiter) newKey(name string) key {
	k := key{limit: newLimit(l.at, false), name: name, came: l.at, used: l.at, late: l.shared.state != Open}
	k.flight.since, k.flight.before = l.at, l.at
	return k
}

// unused returns the place of the key that has had no request for the longest time, 0 for none. That must be a minute, but
// ten times a second, after 64 requests of keys without a place: one that has many of them gets a place soon, whatever
// the number of names. After a search without a result it waits a second, so that many names cost little.
func (l *Limiter) unused() (slot int) {
	l.nameless++
	due := l.nameless >= 2*round && l.at-l.swapped >= lasting/10
	if !due && l.at < l.full {
		return 0
	}
	for i := 1; i < len(l.keys); i++ {
		k := &l.keys[i]
		free := k.held == 0 && k.max == 0 && (due && k.state == Open || l.at-k.used > 6*memory)
		if free && (slot == 0 || k.used < l.keys[slot].used) {
			slot = i
		}
	}
	if slot == 0 {
		l.full = l.at + time.Second
	}
	if due {
		l.nameless, l.swapped = 0, l.at
	}
	return slot
}
