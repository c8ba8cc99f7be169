package balance

import (
	"math"
	"sync/atomic"
	"time"
)

// record is what outlier detection knows of an endpoint.
type record struct {
	consecutive   atomic.Int64 // failures in a row
	total, failed atomic.Int64 // in the current interval

	// With the lock of the Set held.
	ejections int64 // by which the next ejection is longer
}

// judge takes in one answer, and ejects x if it is one too many.
func (s *Set) judge(at int64, x *Endpoint, failed bool) {
	c, r := s.config.Outliers, &x.failure
	r.total.Add(1)
	if !failed {
		if r.consecutive.Load() != 0 {
			r.consecutive.Store(0)
		}
	} else {
		r.failed.Add(1)
		if n := r.consecutive.Add(1); c.Consecutive5xx > 0 && n >= int64(c.Consecutive5xx) {
			s.mu.Lock()
			s.eject(at, x)
			s.mu.Unlock()
		}
	}
	s.compare(at)
}

// eject ejects x, unless too many are. The lock is held.
func (s *Set) eject(at int64, x *Endpoint) {
	c := s.config.Outliers
	if x.ejected.Load() > at {
		return
	}
	ejected := 0
	for _, y := range s.all {
		if y.ejected.Load() > at {
			ejected++
		}
	}
	if ejected >= max(1, int(c.MaxEjectionPercent/100*float64(len(s.all)))) {
		return
	}
	x.failure.ejections++
	d := time.Duration(min(float64(c.BaseEjectionTime)*float64(x.failure.ejections), float64(c.MaxEjectionTime)))
	x.failure.consecutive.Store(0)
	s.skip(&x.ejected, at+int64(d))
	if s.config.SlowStart != nil {
		x.since.Store(at + int64(d)) // when it comes back
	}
}

// compare compares success rates once in an interval.
func (s *Set) compare(at int64) {
	c := s.config.Outliers
	ends := s.interval.Load()
	if at < ends || !s.interval.CompareAndSwap(ends, at+int64(c.Interval)) || ends == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	rates := make([]float64, len(s.all))
	n, sum := 0, 0.0
	for i, x := range s.all {
		rates[i] = -1
		total, failed := x.failure.total.Swap(0), x.failure.failed.Swap(0)
		if total >= int64(c.SuccessRateRequestVolume) {
			rates[i] = max(0, 1-float64(failed)/float64(total))
			n++
			sum += rates[i]
		}
		if x.ejected.Load() <= at-int64(c.Interval) && x.failure.ejections > 0 {
			x.failure.ejections-- // an interval without ejection
		}
	}
	if c.SuccessRateMinimumHosts < 0 || n < c.SuccessRateMinimumHosts {
		return
	}
	least := threshold(rates, sum/float64(n), n, c.SuccessRateStdevFactor)
	for i, rate := range rates {
		if rate >= 0 && rate < least {
			s.eject(at, s.all[i])
		}
	}
}

// threshold returns the success rate below which an endpoint is an outlier.
func threshold(rates []float64, mean float64, n int, factor float64) float64 {
	squares := 0.0
	for _, rate := range rates {
		if rate >= 0 {
			squares += (rate - mean) * (rate - mean)
		}
	}
	return mean - factor*math.Sqrt(squares/float64(n))
}
