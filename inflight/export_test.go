package inflight

// InFlightWithoutSweep is the count as it stands.
func (l *Limiter) InFlightWithoutSweep() int { return int(l.word.Load() >> 32) }
