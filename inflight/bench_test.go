package inflight

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed90641741/spillway"
)

// gate is what the benchmarks compare.
type gate interface {
	TryAcquire() bool
	Release()
}

// floor does what no limiter can do without: one CAS and one Add.
type floor struct{ word atomic.Int64 }

func (f *floor) TryAcquire() bool { s := f.word.Load(); return f.word.CompareAndSwap(s, s+one) }
func (f *floor) Release()         { f.word.Add(-one) }

type mutex struct {
	mu       sync.Mutex
	n, limit int
}

func (m *mutex) TryAcquire() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.n >= m.limit {
		return false
	}
	m.n++
	return true
}

func (m *mutex) Release() { m.mu.Lock(); m.n--; m.mu.Unlock() }

type semaphore chan struct{}

func (s semaphore) TryAcquire() bool {
	select {
	case s <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s semaphore) Release() { <-s }

func peers(t testing.TB, limit int) map[string]gate {
	return map[string]gate{
		"floor":    new(floor), // knows no limit
		"inflight": mustNew(t, limit),
		"mutex":    &mutex{limit: limit},
		"channel":  make(semaphore, limit),
	}
}

var peerNames = []string{"floor", "inflight", "mutex", "channel"}

func BenchmarkAcquireRelease(b *testing.B) {
	for _, name := range peerNames {
		b.Run(name, func(b *testing.B) {
			g := peers(b, DefaultMaxInFlight)[name]
			b.ReportAllocs()
			for b.Loop() {
				if g.TryAcquire() {
					g.Release()
				}
			}
		})
	}
}

func BenchmarkAcquireReleaseParallel(b *testing.B) {
	for _, name := range peerNames {
		b.Run(name, func(b *testing.B) {
			g := peers(b, DefaultMaxInFlight)[name]
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if g.TryAcquire() {
						g.Release()
					}
				}
			})
		})
	}
}

func BenchmarkReject(b *testing.B) {
	for _, name := range peerNames[1:] {
		b.Run(name, func(b *testing.B) {
			g := peers(b, 1)[name]
			g.TryAcquire()
			b.ReportAllocs()
			for b.Loop() {
				g.TryAcquire()
			}
		})
	}
}

func BenchmarkAdmitSettle(b *testing.B) {
	l := mustNew(b, 0)
	b.ReportAllocs()
	for b.Loop() {
		ticket, _ := l.Admit(t0, spillway.Call{})
		ticket.Settle(t0, spillway.OutcomeServed)
	}
}

func BenchmarkAdmitRejected(b *testing.B) {
	l := mustNew(b, 1)
	l.TryAcquire()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = l.Admit(t0, spillway.Call{})
	}
}
