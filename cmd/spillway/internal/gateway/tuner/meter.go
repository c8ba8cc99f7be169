package tuner

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/tune"
)

// A Meter counts the answers of a backend. It is safe for concurrent use; the zero Meter is
// ready.
type Meter struct {
	ended, served, rejected atomic.Uint64
	latency                 atomic.Int64 // nanoseconds
	waiting                 atomic.Int64 // requests in flight
}

// An Ending says how a request ended.
type Ending int

// The values of [Ending].
const (
	Failed Ending = iota // nothing was said of the load
	Served
	Rejected // by the backend, as overloaded
)

// Begin counts a request that is sent. End must be called for it.
func (m *Meter) Begin() { m.waiting.Add(1) }

// End counts a request that has taken this long.
func (m *Meter) End(took time.Duration, how Ending) {
	m.latency.Add(int64(took))
	switch how {
	case Served:
		m.served.Add(1)
	case Rejected:
		m.rejected.Add(1)
	case Failed:
	}
	m.ended.Add(1)
	m.waiting.Add(-1)
}

// Waiting returns how many requests have not ended.
func (m *Meter) Waiting() int64 { return m.waiting.Load() }

// Ended returns how many requests have ended.
func (m *Meter) Ended() uint64 { return m.ended.Load() }

// A Window is what a [Meter] has counted since the last Read. It is for one goroutine.
type Window struct {
	Signals []tune.Signal // that it reads

	meter                   *Meter
	at                      time.Time
	ended, served, rejected uint64
	sum                     int64

	latency float64   // ms, the last that was known
	alive   time.Time // when something last ended, or nothing was in flight
}

// Read puts the values of the signals into values, NaN the first time that
// it sees the Meter, and returns how many requests were served per second. While requests are in
// flight and none of them ends, the latency is at least the time since the last one ended.
func (w *Window) Read(now time.Time, m *Meter, values []float64) (served float64) {
	was, waits := *w, m.Waiting() > 0 // what ends from here on may be counted below
	w.ended, w.served, w.rejected, w.sum = m.ended.Load(), m.served.Load(), m.rejected.Load(), m.latency.Load()
	w.meter, w.at = m, now
	if was.meter != m {
		w.alive = now
		for i := range values {
			values[i] = math.NaN()
		}
		return math.NaN()
	}
	ended := float64(w.ended - was.ended)
	switch {
	case ended > 0:
		w.alive, w.latency = now, float64(w.sum-was.sum)/ended/1e6
	case !waits:
		w.alive, w.latency = now, 0
	default:
		w.latency = max(w.latency, now.Sub(w.alive).Seconds()*1000)
	}
	for i, s := range w.Signals {
		switch s.Name {
		case config.SignalLatency:
			values[i] = w.latency
		case config.SignalRejections:
			values[i] = 100 * float64(w.rejected-was.rejected) / max(1, ended)
		}
	}
	return float64(w.served-was.served) / now.Sub(was.at).Seconds()
}
