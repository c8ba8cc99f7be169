package concurrency

import "time"

// Stats is the state of a [Limiter]. The numbers of a key explain each of its rejections: it is
// Limiting, and InFlight has reached Limit. Limit is 1.5 times the number in service, which is
// Throughput · BaseLatency, plus a little.
type Stats struct {
	// Shared is the limit of all keys together. While it is not open, the limits of single keys are
	// open.
	Shared KeyStats
	// Keys has the limits of single keys. The first is the limit that all [Others] share. The rest is
	// in no order.
	Keys []KeyStats
	// RejectedTotal is how many calls [Limiter.Admit] has rejected.
	RejectedTotal uint64
	// Starved means that this process lacks the processor now, so the Limiter learns nothing.
	Starved bool
}

// KeyStats is the state of the limit of a key.
type KeyStats struct {
	Key   string
	State State
	// InFlight is how many requests are at work. Parked is how many are in flight for so long that
	// they do not count.
	InFlight, Parked int
	// Unknown means that requests end and none of them is answered. One request at a time is let in
	// until one is answered.
	Unknown bool
	// Limit is the highest number of requests at work; +Inf means no limit.
	Limit float64
	// Throughput is the number of requests answered per second in the last round. While Limiting,
	// it is the mean of rounds in which the limit held back requests.
	Throughput float64
	// BaseLatency is the latency without a queue, Latency the recent mean, and Wait the difference.
	// 0 means unknown. While Open, BaseLatency is the least recent mean.
	BaseLatency, Latency, Wait time.Duration
	// Served is how many requests are in service at once, by Little's law: Throughput ·
	// BaseLatency.
	Served float64
}

// Stats returns the state of l at the time now.
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

// Tightest returns the limit that matters most: of the limits that are Limiting, the one with the
// most requests at work, and otherwise the limit of all keys.
func (s Stats) Tightest() KeyStats {
	tightest := s.Shared
	for _, k := range s.Keys {
		if k.Limiting() && (!tightest.Limiting() || k.InFlight > tightest.InFlight) {
			tightest = k
		}
	}
	return tightest
}

// Limiting reports whether the limit may hold back requests: its state is not Open, or Unknown is
// set.
func (k KeyStats) Limiting() bool { return k.State != Open || k.Unknown }
