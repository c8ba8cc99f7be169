package concurrency

import "time"

// Stats says how a [Limiter] stands. By the numbers of a key each of its rejections can
// be explained: it is Limiting, and InFlight has reached Limit, which is 1.5 times what is
// in service, Throughput · BaseLatency.
type Stats struct {
	// Shared is the limit of all keys together. While it is at work, all keys are open.
	Shared KeyStats
	// Keys are those with a limit of their own, in no order, the one of all [Others] first.
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
	// Unknown says that requests end and none of them is answered: one at a time is let in until one is.
	Unknown bool
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
		Shared: l.all.stats("", &l.config), RejectedTotal: l.rejected,
		Starved: l.starved(), Keys: make([]KeyStats, 0, len(l.keys)),
	}
	s.Shared.Parked = l.parked
	for i := range l.keys {
		of := l.keys[i].stats(l.keys[i].name, &l.config)
		of.Parked = l.keys[i].parked
		s.Keys = append(s.Keys, of)
	}
	return s
}

func (l *limit) stats(name string, bounds *Config) KeyStats {
	rate, base := l.throughput(), l.base
	if l.state == Open {
		base = l.latency.least()
	}
	return KeyStats{
		Key: name, State: l.state, Unknown: l.slow.unknown(), InFlight: l.working, Limit: l.limit(bounds),
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
func (k KeyStats) Limiting() bool { return k.State != Open || k.Unknown }
