package concurrency

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/race"
)

// model counts requests the slow way: a list of all of them.
type model struct {
	requests []*modelled
}

type modelled struct {
	ticket    spillway.Ticket
	key       string
	suspended int
	settled   bool
}

// held is how many requests of a key are in flight and not suspended.
func (m *model) held(key string) (n int) {
	for _, r := range m.requests {
		if !r.settled && r.suspended == 0 && r.key == key {
			n++
		}
	}
	return n
}

// drive feeds random operations to a Limiter and to the model. The clock goes back, too, and half of the operations come at
// the same time as the one before.
func drive(t *testing.T, next func() uint32, ops int) {
	t.Helper()
	l, m := must(t, Config{MaxKeys: 3, MaxInFlight: 50}), &model{}
	now := t0
	for range ops {
		r := next()
		if r>>28%2 == 0 {
			now = now.Add(time.Duration(int(next()%4000)-200) * []time.Duration{time.Microsecond, time.Millisecond}[r>>8%8/7])
		}
		key := strconv.Itoa(int(r >> 16 % 5))
		switch r % 8 {
		case 0, 1:
			if ticket, err := l.Admit(now, call(key)); err == nil {
				m.requests = append(m.requests, &modelled{ticket: ticket, key: key})
			}
		case 2:
			m.requests = append(m.requests, &modelled{ticket: l.Enter(now, call(key)), key: key})
		case 3:
			l.Beat(now, false)
		case 4:
			l.Rest()
		default:
			if len(m.requests) > 0 {
				m.requests[int(r>>12)%len(m.requests)].operate(now, r%8, spillway.Outcome(r>>20%7))
			}
		}
		m.compare(t, l, now)
		m.forget()
	}
	for _, r := range m.requests {
		r.operate(now, 7, spillway.OutcomeServed)
	}
	m.compare(t, l, now)
	if working, parked := l.Working(); working != 0 || parked != 0 {
		t.Fatalf("%d working and %d parked at the end", working, parked)
	}
}

// operate suspends, resumes or settles a request, which may be settled already.
func (r *modelled) operate(now time.Time, what uint32, o spillway.Outcome) {
	switch what {
	case 5:
		r.ticket.Suspend(now)
		r.suspended++
	case 6:
		r.ticket.Resume(now)
		r.suspended = max(0, r.suspended-1)
	case 7:
		r.ticket.Settle(now, o)
		r.settled = true
	}
}

// forget drops settled requests when there are many: some are kept for late operations.
func (m *model) forget() {
	if len(m.requests) > 100 {
		if m.requests[0].settled {
			m.requests = m.requests[1:]
		}
	}
}

// compare checks the counts of each key and of all keys.
func (m *model) compare(t *testing.T, l *Limiter, now time.Time) {
	t.Helper()
	s, all := l.Stats(now), 0
	names := map[string]bool{}
	for _, k := range s.Keys[1:] {
		names[k.Key] = true
		if want := m.held(k.Key); k.Key != "" && want < k.InFlight+k.Parked {
			t.Fatalf("key %q: %d in flight and %d parked, want %d", k.Key, k.InFlight, k.Parked, want)
		}
	}
	for i := range 5 {
		all += m.held(strconv.Itoa(i))
	}
	sum := 0
	for _, k := range s.Keys {
		sum += k.InFlight + k.Parked
	}
	for _, k := range append(s.Keys, s.Shared) {
		if k.InFlight < 0 || k.Parked < 0 || math.IsNaN(k.Limit) || k.Limit < 1 || k.Limit > 50 || math.IsNaN(k.Throughput) || k.Throughput < 0 || k.BaseLatency < 0 {
			t.Fatalf("%+v", k)
		}
	}
	if working, parked := l.Working(); sum != all || working+parked != all || s.Shared.InFlight+s.Shared.Parked != all {
		t.Fatalf("%d in flight and %d parked, in all keys %d, want %d; of the shared limit %d, want %d", working, parked, sum, all, s.Shared.InFlight+s.Shared.Parked, all)
	}
	if len(names) > 3 {
		t.Fatalf("%d keys, want at most 3", len(names))
	}
}

func TestAgainstModel(t *testing.T) {
	race.SkipOneGoroutine(t)
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		drive(t, rng.Uint32, 3000)
	}
}

func FuzzLimiter(f *testing.F) {
	f.Add([]byte("\x00\x01\x02\x07\x05\x06\x07\x03\x04 some operations and times"))
	f.Fuzz(func(t *testing.T, b []byte) {
		i := 0
		next := func() (v uint32) {
			for range 4 {
				if i < len(b) {
					v = v<<8 | uint32(b[i])
				}
				i++
			}
			return v
		}
		drive(t, next, min(len(b)/8, 2000))
	})
}
