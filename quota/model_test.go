package quota

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/race"
)

// model is the bucket of one customer the slow way: tokens that drip in, a list of
// the last rejections, and the rule of the package comment looked up in it.
type model struct {
	rate, capacity float64
	tokens         float64
	at             time.Duration
	rejections     []decision
}

// decision is what happened to a call.
type decision struct {
	at       time.Duration
	class    int
	admitted bool
}

func (m *model) see(at time.Duration) {
	if at > m.at {
		m.tokens = min(m.capacity, m.tokens+m.rate*(at-m.at).Seconds())
		m.at = at
		m.rejections = slices.DeleteFunc(m.rejections, func(r decision) bool { return at-r.at > time.Second })
	}
}

// admit decides on a call. It says that it cannot tell where the tokens are on
// the threshold, but for rounding.
func (m *model) admit(class int) (admitted, sure bool) {
	reserve := m.capacity * float64(3-class) / 4
	admitted = m.tokens > reserve
	for _, r := range m.rejections {
		after := time.Duration(r.class-class) * time.Second / 4
		admitted = admitted && (r.class < class || m.at-r.at > after)
	}
	return admitted, math.Abs(m.tokens-reserve) > 1e-6
}

// drive feeds the same operations to a Quota and to the model.
func drive(t *testing.T, ops []byte) {
	t.Helper()
	q := must(t, Config{Allocator: fixed{Rate: 64}})
	m := &model{rate: 64, capacity: 64, tokens: 64}
	var tickets []spillway.Ticket
	now := time.Duration(0)
	q.Stats(t0)
	for i := 0; i+2 < len(ops); i += 3 {
		op, class, arg := ops[i]%8, int(ops[i+1]%4), ops[i+2]
		if op == 0 {
			now += time.Duration(arg) * ms
			continue
		}
		now = max(0, now+time.Duration(int8(ops[i+1]))*ms/16)
		m.see(now)
		switch {
		case op <= 2 && len(tickets) > 0: // of a call before, all that is to be said
			k := int(arg) % len(tickets)
			amount := -1.
			if op == 1 {
				tickets[k].Settle(t0.Add(now), spillway.OutcomeNotStarted)
			} else {
				amount = float64(int8(arg)) / 16
				q.Charge(t0.Add(now), &tickets[k], amount)
				tickets[k].Settle(t0.Add(now), spillway.OutcomeServed)
			}
			m.tokens = min(m.capacity, m.tokens-amount)
			tickets = slices.Delete(tickets, k, k+1)
		default:
			want, sure := m.admit(class)
			ticket, err := q.Admit(t0.Add(now), callOf("c", class))
			if sure && (err == nil) != want {
				t.Fatalf("op %d at %v: class %d is rejected: %v; the model says %v with %v tokens", i/3, m.at, class, err, !want, m.tokens)
			}
			if err != nil {
				m.rejections = append(m.rejections, decision{at: m.at, class: class})
				continue
			}
			m.tokens--
			tickets = append(tickets, ticket)
		}
	}
}

func TestAgainstModel(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		ops := make([]byte, 3000)
		for i := range ops {
			ops[i] = byte(r.Uint32())
		}
		drive(t, ops)
	}
}

func FuzzAgainstModel(f *testing.F) {
	f.Add([]byte("10020X10077020x20\x9917020\xc910020x100")) // gives back more to one class than another ever paid
	f.Add([]byte{3, 0, 0, 4, 1, 0, 5, 2, 0, 1, 0, 0, 0, 0, 255})
	f.Fuzz(func(t *testing.T, ops []byte) {
		drive(t, ops[:min(len(ops), 3000)])
	})
}

// storm is a customer that sends bursts of random classes, charges and gives
// back costs, while its grant changes. It returns what happened to each call.
func storm(t *testing.T, seed uint64, g *grants, change bool) []decision {
	race.SkipOneGoroutine(t)
	r := rand.New(rand.NewPCG(seed, 3))
	q := must(t, Config{Allocator: g})
	var all []decision
	now := time.Duration(0)
	for range 150 {
		now += time.Duration(r.IntN(300)) * ms
		if change {
			g.rate = []float64{0, 1, 20, 50, 200, 1000}[r.IntN(6)]
		}
		mix := 1 + r.IntN(4)
		for range r.IntN(60) {
			now += time.Duration(r.IntN(20)) * ms / 4
			class := 4 - mix + r.IntN(mix)
			ticket, err := q.Admit(t0.Add(now), callOf("c", class))
			all = append(all, decision{now, class, err == nil})
			if change && err == nil && r.IntN(4) == 0 {
				q.Charge(t0.Add(now), &ticket, r.Float64()*4-2)
				ticket.Settle(t0.Add(now), spillway.OutcomeNotStarted)
			}
		}
	}
	return all
}

// While a class is rejected, and for a quarter of the burst per class after that,
// no lower class of the customer is admitted, whatever its grant does.
func TestNoLowerClassAfterARejection(t *testing.T) {
	for seed := range uint64(20) {
		rejected, pairs := [4]time.Duration{-time.Hour, -time.Hour, -time.Hour, -time.Hour}, 0
		for _, d := range storm(t, seed, &grants{rate: 100}, true) {
			if !d.admitted {
				rejected[d.class] = d.at
				continue
			}
			for k := d.class + 1; k < 4; k++ {
				if memory := time.Duration(k-d.class) * time.Second / 4; d.at-rejected[k] < memory {
					t.Fatalf("seed %d: class %d was admitted at %v, class %d rejected at %v", seed, d.class, d.at, k, rejected[k])
				}
				pairs++
			}
		}
		if pairs == 0 {
			t.Fatalf("seed %d shows nothing", seed)
		}
	}
}

// Between the last call of a lower class and the rejection of a higher one, what is
// reserved for the higher was used up by it and those above, less one call.
func TestReserveIsUsedBeforeARejection(t *testing.T) {
	const rate = 100 // and so many tokens
	shown := 0
	for seed := range uint64(20) {
		all := storm(t, seed, &grants{rate: rate}, false)
		for i, d := range all {
			if d.admitted {
				continue
			}
			used := 0.
			for _, before := range slices.Backward(all[:i]) {
				if before.admitted && before.class < d.class {
					if reserve := float64(d.class-before.class) * rate / 4; used < reserve-1 {
						t.Fatalf("seed %d: class %d was rejected at %v, class %d admitted at %v, with %v calls in between",
							seed, d.class, d.at, before.class, before.at, used)
					}
					shown++
					break
				}
				if before.admitted {
					used++
				}
			}
		}
	}
	if shown < 1000 {
		t.Errorf("only %d rejections had a lower class before them", shown)
	}
}
