package benchmarks

import (
	"sync"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go/bulkhead"
	"golang.org/x/sync/semaphore"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/inflight"
)

// limit is that of all limiters.
const limit = inflight.DefaultMaxInFlight

// A limiter bounds what is in flight. What acquire admitted, release ends.
type limiter interface {
	acquire() bool
	release()
}

var limiters = []impl[limiter]{
	{"spillway", func(tb testing.TB) limiter { return ourLimit{newLimiter(tb)} }},
	{"spillway-ticket", func(tb testing.TB) limiter { return &ticketLimit{gate: newLimiter(tb)} }},
	{"failsafe", func(testing.TB) limiter { return failsafeLimit{bulkhead.New[any](limit)} }},
	{"xsync", func(testing.TB) limiter { return xsyncLimit{semaphore.NewWeighted(limit)} }},
	{"channel", func(testing.TB) limiter { return make(channelLimit, limit) }},
	{"mutex", func(testing.TB) limiter { return &mutexLimit{} }},
}

func newLimiter(tb testing.TB) *inflight.Limiter {
	tb.Helper()
	return must(inflight.New(inflight.Config{MaxInFlight: limit}))(tb)
}

type ourLimit struct{ *inflight.Limiter }

func (l ourLimit) acquire() bool { return l.TryAcquire() }
func (l ourLimit) release()      { l.Release() }

// A ticketLimit is the same by way of the Ticket, which settles once only. It
// keeps the last one, as a caller would its own.
type ticketLimit struct {
	gate   *inflight.Limiter
	ticket spillway.Ticket
}

func (l *ticketLimit) acquire() bool {
	ticket, err := l.gate.Admit(time.Time{}, spillway.Call{})
	if err != nil {
		return false
	}
	l.ticket = ticket
	return true
}

func (l *ticketLimit) release() { l.ticket.Settle(time.Time{}, spillway.OutcomeServed) }

type failsafeLimit struct{ bulkhead.Bulkhead[any] }

func (l failsafeLimit) acquire() bool { return l.TryAcquirePermit() }
func (l failsafeLimit) release()      { l.ReleasePermit() }

type xsyncLimit struct{ *semaphore.Weighted }

func (l xsyncLimit) acquire() bool { return l.TryAcquire(1) }
func (l xsyncLimit) release()      { l.Release(1) }

type channelLimit chan struct{}

func (l channelLimit) acquire() bool {
	select {
	case l <- struct{}{}:
		return true
	default:
		return false
	}
}

func (l channelLimit) release() { <-l }

type mutexLimit struct {
	mu sync.Mutex
	n  int
}

func (l *mutexLimit) acquire() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n >= limit {
		return false
	}
	l.n++
	return true
}

func (l *mutexLimit) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n--
}

func BenchmarkInflightAdmitted(b *testing.B) {
	bench(b, limiters, func(b *testing.B, l limiter) {
		for b.Loop() {
			if l.acquire() {
				l.release()
			}
		}
	})
}

func BenchmarkInflightRejected(b *testing.B) {
	bench(b, limiters, func(b *testing.B, l limiter) {
		fill(l)
		for b.Loop() {
			l.acquire()
		}
	})
}

// TestLimiters expects as many admitted as the limit says, and one more for one
// that has ended.
func TestLimiters(t *testing.T) {
	each(t, "limit", limiters, func(t *testing.T, l limiter) {
		if n := fill(l); n != limit {
			t.Fatalf("admitted %d, want %d", n, limit)
		}
		l.release()
		if n := fill(l); n != 1 {
			t.Errorf("admitted %d after one had ended, want 1", n)
		}
	})
}

// fill acquires until it is rejected, and returns how often it was not.
func fill(l limiter) (n int) {
	for n <= limit && l.acquire() {
		n++
	}
	return n
}
