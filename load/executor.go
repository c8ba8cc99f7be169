package load

import (
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/internal/elapsed"
)

// fresh is how long a reading of the scheduler is used. Reading takes the lock of the scheduler,
// which a process with many processors should not do for each of a million requests.
const fresh = 20 * time.Microsecond

// Executor is the state of the Go scheduler at some moment.
type Executor struct {
	Running    int // goroutines that run
	Runnable   int // goroutines that are ready to run, and wait for a processor
	Processors int // GOMAXPROCS
}

// executor reads the state of the scheduler, at most once in 20 µs.
type executor struct {
	running, runnable, processors atomic.Int64
	seen                          atomic.Int64 // last reading, in ns since 1970; needs no lock

	mu        sync.Mutex
	samples   []metrics.Sample
	last      time.Time
	smoothing time.Duration
	average   float64
}

func newExecutor(smoothing time.Duration) *executor {
	e := &executor{
		samples: []metrics.Sample{
			{Name: "/sched/goroutines/running:goroutines"},
			{Name: "/sched/goroutines/runnable:goroutines"},
			{Name: "/sched/gomaxprocs:threads"},
		},
		smoothing: smoothing,
	}
	e.read()
	return e
}

// at returns the state at the time now. If another goroutine is reading it, at returns the last
// one.
func (e *executor) at(now time.Time) Executor {
	if !within(now, &e.seen, fresh) && e.mu.TryLock() {
		if d := now.Sub(e.last); d >= fresh {
			e.renew(now, d)
		}
		e.mu.Unlock()
	}
	return Executor{
		Running:    int(e.running.Load()),
		Runnable:   int(e.runnable.Load()),
		Processors: int(e.processors.Load()),
	}
}

// within reports whether less than d has passed since seen, in nanoseconds since 1970. If the clock
// is set to another time, the result may be wrong, for at most d.
func within(now time.Time, seen *atomic.Int64, d time.Duration) bool {
	passed := now.UnixNano() - seen.Load()
	return passed >= 0 && passed < int64(d)
}

// refresh reads the state now, even if the last reading is still fresh.
func (e *executor) refresh(now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.renew(now, max(now.Sub(e.last), 0))
}

func (e *executor) renew(now time.Time, d time.Duration) {
	e.read()
	e.smooth(d)
	e.last = now
	e.seen.Store(now.UnixNano())
}

func (e *executor) read() {
	metrics.Read(e.samples)
	e.running.Store(int64(e.samples[0].Value.Uint64()))
	e.runnable.Store(int64(e.samples[1].Value.Uint64()))
	e.processors.Store(int64(max(1, e.samples[2].Value.Uint64())))
}

// smooth adds the last reading to the average, for the time d since the reading before.
func (e *executor) smooth(d time.Duration) {
	now := float64(e.running.Load()+e.runnable.Load()) / float64(e.processors.Load())
	e.average += (now - e.average) * elapsed.Weight(d, e.smoothing)
}

func (e *executor) load() float64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.average
}

func (e *executor) setSmoothing(d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.smoothing = d
}
