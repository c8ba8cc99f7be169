package layers

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A measured load is what its clients saw.
type measured struct {
	calls, served int
	attempts      atomic.Int64
	mu            sync.Mutex
	latencies     []time.Duration
	stories       []*story
	failures      map[string]int // by their text
}

func (m *measured) success() float64       { return float64(m.served) / float64(m.calls) }
func (m *measured) amplification() float64 { return float64(m.attempts.Load()) / float64(m.calls) }

// good reports whether nearly all calls were served, for few attempts more.
func (m *measured) good() bool { return m.success() >= 0.995 && m.amplification() <= 1.1 }

func (m *measured) p99() time.Duration { return m.quantile(0.99) }

func (m *measured) quantile(q float64) time.Duration {
	if len(m.latencies) == 0 {
		return 0
	}
	slices.Sort(m.latencies)
	return m.latencies[int(float64(len(m.latencies))*q)]
}

func (m *measured) String() string {
	text := fmt.Sprintf("%d calls, success %.4f, amplification %.3f, p50 %v, p99 %v", m.calls, m.success(), m.amplification(),
		m.quantile(0.5).Round(100*time.Microsecond), m.p99().Round(100*time.Microsecond))
	for _, failure := range slices.Sorted(maps.Keys(m.failures)) {
		text += fmt.Sprintf("\n%6d × %s", m.failures[failure], failure)
	}
	return text
}

// offer makes calls at random times, without waiting for their ends, and then waits for them.
func (m *measured) offer(rate float64, d time.Duration, known *stories, call func(context.Context) error) {
	var all sync.WaitGroup
	start := time.Now()
	for next := time.Duration(0); next < d; next += time.Duration(rand.ExpFloat64() / rate * float64(time.Second)) {
		if wait := next - time.Since(start); wait > 0 {
			time.Sleep(wait)
		}
		m.calls++
		all.Go(func() {
			begun := time.Now()
			ctx, s := known.begin()
			err := call(ctx)
			known.end(s, err == nil)
			m.mu.Lock()
			defer m.mu.Unlock()
			m.stories = append(m.stories, s)
			if err != nil {
				if m.failures == nil {
					m.failures = make(map[string]int)
				}
				m.failures[err.Error()]++
				return
			}
			m.served++
			m.latencies = append(m.latencies, time.Since(begun))
		})
	}
	all.Wait()
}
