package attempts

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed90641741/spillway/internal/race"
)

// model remembers each request for good, and looks through them when asked.
type model struct {
	at       time.Time
	requests []request
}

type request struct {
	at    time.Time
	first bool
}

func (m *model) observe(now time.Time, attempt int) {
	if now.After(m.at) {
		m.at = now
	}
	m.requests = append(m.requests, request{m.at, attempt <= 0})
}

// counts returns how many requests are in a window with the given bounds.
func (m *model) counts(now time.Time, length time.Duration, firsts int) (first, all uint64) {
	if now.After(m.at) {
		m.at = now
	}
	for _, r := range slices.Backward(m.requests) {
		if m.at.Sub(r.at) >= length || r.first && first == uint64(firsts) {
			break
		}
		all++
		if r.first {
			first++
		}
	}
	return first, all
}

// drive feeds the same requests to a Histogram and to the model: what the one
// remembers lies between what the other does with bounds a tenth apart, one
// twentieth for each bound.
func drive(t *testing.T, next func() uint32, ops int) {
	t.Helper()
	const length, firsts = 2 * time.Second, 200
	h, m := must(t, Config{Window: length, FirstAttempts: firsts}), &model{at: t0}
	now := t0
	h.Stats(now)
	for i := range ops {
		r := next()
		gap := time.Duration(r%97) * 50 * time.Microsecond
		if r>>8%256 == 0 {
			gap *= 100 // a pause
		}
		now = now.Add(gap - 200*time.Microsecond)
		attempt := int(r >> 16 % 4)
		h.Observe(now, attempt)
		m.observe(now, attempt)
		if i%16 > 0 {
			continue
		}
		got := h.Stats(now).Counts
		firstLeast, allLeast := m.counts(now, length*19/20, firsts*19/20)
		firstMost, allMost := m.counts(now, length, firsts)
		if got[0] < firstLeast || got[0] > firstMost || got.Total() < allLeast || got.Total() > allMost {
			t.Fatalf("op %d: %d first of %d; the model has %d to %d of %d to %d",
				i, got[0], got.Total(), firstLeast, firstMost, allLeast, allMost)
		}
	}
}

func TestAgainstModel(t *testing.T) {
	race.SkipOneGoroutine(t)
	for seed := range uint64(8) {
		drive(t, rand.New(rand.NewPCG(seed, 1)).Uint32, 3000)
	}
}

func FuzzAgainstModel(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 255, 254, 253, 252})
	f.Fuzz(func(t *testing.T, data []byte) {
		ops := min(len(data)/4, 2000)
		drive(t, func() uint32 {
			v := uint32(data[0]) | uint32(data[1])<<8 | uint32(data[2])<<16 | uint32(data[3])<<24
			data = data[4:]
			return v
		}, ops)
	})
}
