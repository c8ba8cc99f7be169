package concurrency

// rule returns the limit that decides for a key: the limit of all keys unless that is open, and
// otherwise the key's own.
func (l *Limiter) rule(k *key) *limit {
	if l.all.state != Open {
		return l.all
	}
	return k.limit
}

// decide updates a key's own limit and the limit of all keys after a request of the key has ended.
// While the limit of all keys is not open, the key's own limit is open.
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

// blame begins a trial when the requests of all keys together show a queue. If one key has at least
// 31 of 32 requests in flight, the trial is for that key, otherwise for all keys.
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
	l.all.before.calls = 2 * round // a longer probe, because its base latency is for all keys
}
