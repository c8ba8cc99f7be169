package concurrency

// rule returns the limit that decides for a key: its own, or that of all keys while it is at work.
func (l *Limiter) rule(k *key) *limit {
	if l.all.state != Open {
		return l.all
	}
	return k.limit
}

// decide takes the actions of the two limits that count for a key after one of its requests has ended. While that of all keys is at work,
// the key's own is open.
func (l *Limiter) decide(k *key) {
	stall := l.stall()
	if k.decide(stall, l.busy) {
		if l.all.state == Open {
			k.suspect()
		} else {
			k.restart()
		}
	}
	if l.all.decide(stall, l.busy) {
		l.blame()
	}
	if l.all.state != Open && k.state != Open {
		k.open()
	}
}

// blame begins a trial on the evidence of all keys: of the key that has nearly all of what is in flight, or else of all.
func (l *Limiter) blame() {
	for i := range l.keys {
		if k := &l.keys[i]; round*(l.all.working-k.working) <= l.all.working {
			if k.state == Open {
				k.suspect()
			}
			l.all.restart()
			return
		}
	}
	l.all.suspect()
	l.all.before.calls = 2 * round // its base latency is for all
}
