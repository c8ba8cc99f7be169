package throttle_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/throttle"
)

// model is the statistics of the throttle in a simple, slow form: a list of all events,
// searched for each query.
type model struct {
	width  time.Duration
	latest time.Time
	events []event
}

type event struct {
	bucket   int64
	accepted bool
}

func (m *model) see(now time.Time) int64 {
	if now.After(m.latest) {
		m.latest = now
	}
	return int64(m.latest.Sub(t0) / m.width)
}

func (m *model) add(now time.Time, accepted bool) {
	m.events = append(m.events, event{m.see(now), accepted})
}

func (m *model) counts(now time.Time) (requests, accepts float64) {
	head := m.see(now)
	for _, e := range m.events {
		if e.bucket > head-30 {
			requests++
			if e.accepted {
				accepts++
			}
		}
	}
	return requests, accepts
}

// drive feeds the same operations to a throttle and to the model.
func drive(t *testing.T, next func() uint32, ops int) {
	t.Helper()
	u := 0.0
	th := must(t, throttle.Config{Window: 3 * time.Second, ProbeInterval: 3 * time.Second, Rand: func() float64 { return u }})
	m := &model{width: 100 * time.Millisecond}
	now := t0
	th.Stats(now) // the window begins at t0
	for i := range ops {
		r := next()
		now = now.Add(time.Duration(r%64-8) * 5 * time.Millisecond)
		if now.Before(t0) {
			now = t0
		}
		u = float64(r>>8&0xff) / 256
		ticket, err := th.Admit(now, spillway.Call{})
		switch o := spillway.Outcome(1 + r>>16%5); {
		case err != nil:
			m.add(now, false)
		case i%7 == 0:
			ticket.Settle(now, spillway.OutcomeOverloaded)
			m.add(now, false)
		default:
			ticket.Settle(now, o)
			if o != spillway.OutcomeAbandoned {
				m.add(now, o.Accepted())
			}
		}
		s := th.Stats(now)[spillway.Critical.Index()]
		requests, accepts := m.counts(now)
		if s.Requests != requests || s.Accepts != accepts {
			t.Fatalf("op %d: throttle counts %v of %v, model %v of %v", i, s.Accepts, s.Requests, accepts, requests)
		}
		if s.Probability < 0 || s.Probability > 1 || s.Limit < 0 {
			t.Fatalf("op %d: p = %v, limit %v", i, s.Probability, s.Limit)
		}
	}
}

func TestAgainstModel(t *testing.T) {
	race.SkipOneGoroutine(t)
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		drive(t, r.Uint32, 500)
	}
}

func FuzzAgainstModel(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 255, 254, 253, 252})
	f.Fuzz(func(t *testing.T, data []byte) {
		ops := min(len(data)/4, 500)
		drive(t, func() uint32 {
			v := uint32(data[0]) | uint32(data[1])<<8 | uint32(data[2])<<16 | uint32(data[3])<<24
			data = data[4:]
			return v
		}, ops)
	})
}
