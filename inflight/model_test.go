package inflight

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

// model is a Limiter as one would write it without atomics.
type model struct {
	limit, inFlight          int
	drops, unreported, spare uint64
	tickets                  []spillway.Ticket // of the real Limiter, not settled yet
	bare                     int               // places taken by TryAcquire
}

// play runs ops, two bytes each, on a Limiter and on the model, and fails at the
// first difference.
func play(t *testing.T, ops []byte) {
	l := mustNew(t, 0)
	m := model{limit: DefaultMaxInFlight}
	for i := 0; i+1 < len(ops); i += 2 {
		m.step(t, l, ops[i], ops[i+1])
		got := l.Stats(time.Time{})
		want := Stats{MaxInFlight: m.limit, InFlight: m.inFlight, RejectedTotal: m.drops, SurplusTotal: m.spare}
		if got != want || l.Full() != (m.inFlight >= m.limit) {
			t.Fatalf("after op %d (%d, %d): %+v, full %v; the model has %+v", i/2, ops[i], ops[i+1], got, l.Full(), want)
		}
	}
	for range m.bare {
		l.Release()
	}
	for i := range m.tickets {
		m.tickets[i].Settle(t0, spillway.OutcomeServed)
	}
	if got := l.Stats(time.Time{}).InFlight; got != 0 {
		t.Fatalf("%d in flight after everything ended", got)
	}
}

func (m *model) step(t *testing.T, l *Limiter, op, arg byte) {
	switch op % 8 {
	case 0:
		if got := l.TryAcquire(); got != m.admit() {
			t.Fatalf("TryAcquire is %v with %d of %d", got, m.inFlight, m.limit)
		} else if got {
			m.bare++
		}
	case 1:
		ticket, err := l.Admit(t0, spillway.Call{})
		if (err == nil) != m.admit() {
			t.Fatalf("Admit: %v with %d of %d", err, m.inFlight, m.limit)
		} else if err == nil {
			m.tickets = append(m.tickets, ticket)
		}
	case 2:
		switch {
		case m.bare > 0:
			l.Release()
			m.bare, m.inFlight = m.bare-1, m.inFlight-1
		case m.inFlight == 0:
			l.Release() // too many
			m.spare++
		}
	case 3:
		if n := len(m.tickets); n > 0 {
			ticket := &m.tickets[int(arg)%n]
			ticket.Settle(t0, spillway.Outcome(arg))
			ticket.Settle(t0, spillway.OutcomeServed)
			*ticket = m.tickets[n-1]
			m.tickets = m.tickets[:n-1]
			m.inFlight--
		}
	case 4:
		m.limit = int(arg % 16)
		l.SetMaxInFlight(uint32(m.limit))
	case 5:
		m.limit = math.MaxInt32
		l.SetMaxInFlight(math.MaxUint32 - uint32(arg))
	case 6:
		if got := l.TakeRejected(); got != m.unreported {
			t.Fatalf("TakeRejected is %d, want %d", got, m.unreported)
		} else if arg%2 == 0 {
			l.PutBackRejected(got)
		} else {
			m.unreported = 0
		}
	case 7:
		l.Reject()
		m.drops, m.unreported = m.drops+1, m.unreported+1
	}
}

func (m *model) admit() bool {
	if m.inFlight >= m.limit {
		m.drops, m.unreported = m.drops+1, m.unreported+1
		return false
	}
	m.inFlight++
	return true
}

func TestModel(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		ops := make([]byte, 1000)
		for i := range ops {
			ops[i] = byte(random.Uint32())
		}
		play(t, ops)
	}
}

func FuzzLimiter(f *testing.F) {
	f.Add([]byte{4, 2, 0, 0, 1, 0, 0, 0, 3, 0, 2, 0, 2, 0, 6, 0, 6, 1})
	f.Add([]byte{5, 0, 0, 0, 0, 0, 4, 1, 0, 0, 2, 0, 2, 0, 7, 0})
	f.Fuzz(play)
}
