package concurrency

import "time"

// Stats says how a [Limiter] stands. By the numbers of a key each of its rejections can
// be explained: it is Limiting, and InFlight has reached Limit, which is 1.5 times what is
// in service, Throughput · BaseLatency.
type Stats struct {
	// Shared is the limit of all keys that wait for the same thing.
	Shared KeyStats
	// Keys are those with a limit of their own, in no order, the one of all [Others] first. A key that came while Shared was at work is one of
	// the others until that ends, or ten seconds later when nothing limits the others.
	Keys []KeyStats
	// RejectedTotal is how many calls [Limiter.Admit] has rejected.
	RejectedTotal uint64
	// Starved says that this process lacks the processor, so that nothing is learnt.
	Starved bool
}

// KeyStats is what is known of a key.
type KeyStats struct {
	Key   string
	State State
	// InFlight are at work. Parked are in flight for so long that they do not count.
	InFlight, Parked int
	// Apart says that Shared is at work and does not limit this key, which waits for something else.
	// Its requests do not count there, and its own limit decides.
	Apart bool
	// Limit is how many may be at work; +Inf is no limit.
	Limit float64
	// Throughput is how many requests are answered per second, as of the last round; while
	// Limiting, as of the last one in which the limit held some back.
	Throughput float64
	// BaseLatency is the latency without a queue, Latency the recent mean, and Wait the
	// difference. 0 is unknown. While Open, BaseLatency is the least mean of some requests.
	BaseLatency, Latency, Wait time.Duration
	// Served is how many are in service at once, by Little's law: Throughput · BaseLatency.
	Served float64
}

// Stats returns the levels at the time now.
func (l *Limiter) Stats(now time.Time) Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advance(now)
	s := Stats{
		Shared: l.shared.stats("", &l.config), RejectedTotal: l.rejected,
		Starved: l.starved(), Keys: make([]KeyStats, 0, len(l.keys)),
	}
	for k := range l.units {
		of := k.stats(k.name, &l.config)
		of.Parked, of.Apart = k.parked, k.apart
		s.Keys = append(s.Keys, of)
	}
	for i := range l.keys {
		k := &l.keys[i]
		if k.late {
			s.Keys[0].Parked += k.parked
		}
		if !l.group(k).apart {
			s.Shared.Parked += k.parked
		}
	}
	return s
}

func (l *limit) stats(name string, bounds *Config) KeyStats {
	rate, base := l.throughput(), l.base
	if l.state == Open {
		base = l.latency.least()
	}
	return KeyStats{
		Key: name, State: l.state, InFlight: l.working, Limit: l.limit(bounds),
		Throughput: rate, BaseLatency: seconds(base), Latency: seconds(l.latency.mean),
		Wait: seconds(max(0, l.latency.mean-base)), Served: rate * base,
	}
}

// Tightest returns the limit that matters most: the one that is Limiting with the most
// requests at work, else that of all keys.
func (s Stats) Tightest() KeyStats {
	tightest := s.Shared
	for _, k := range s.Keys {
		if k.Limiting() && (!tightest.Limiting() || k.InFlight > tightest.InFlight) {
			tightest = k
		}
	}
	return tightest
}

// Limiting reports whether a queue was found, or is being looked for.
func (k KeyStats) Limiting() bool { return k.State != Open }
