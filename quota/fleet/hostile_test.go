package fleet

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/quota"
)

// liar is a Board that says what it likes.
type liar func(Said) (Heard, error)

func (l liar) Sync(_ context.Context, s Said) (Heard, error) { return l(s) }
func (l liar) Publish(context.Context, Publication) error    { return nil }
func (l liar) Leave(_ context.Context, _ string) error       { return nil }

// encoded is a well-formed message with one level.
func encoded(v Version, tasks int, weight, unlisted float64, l Level) []byte {
	return encodeLevels(&Levels{
		Version: v, Tasks: tasks, weight: weight, unlisted: unlisted,
		customers: map[string]Level{"mail": l, "listed": l, "unlisted": l, "": l},
	})
}

// boards lie, each in its own way; n is how often they did.
func boards() map[string]func(n uint64, s Said) Heard {
	r := rand.New(rand.NewPCG(1, 1))
	honest := encoded(Version{1, 1}, 20, 1, 0, Level{Rate: 100, Marginal: 2, Share: 5})
	leads := func(n uint64, reports ...Stamped) Heard {
		return Heard{Now: time.Duration(n) * 200 * ms, Epoch: 1, Leader: true, Reports: reports}
	}
	return map[string]func(n uint64, s Said) Heard{
		"nothing": func(uint64, Said) Heard { return Heard{} },
		"garbage": func(n uint64, _ Said) Heard {
			b := make([]byte, r.IntN(100))
			for i := range b {
				b[i] = byte(r.Uint32())
			}
			return Heard{Epoch: n, Levels: b}
		},
		"flipped bits": func(n uint64, _ Said) Heard {
			b := slices.Clone(honest)
			binary.LittleEndian.PutUint64(b[9:], n)
			b[17+r.IntN(len(b)-17)] ^= 1 << r.IntN(8)
			return Heard{Epoch: 1, Levels: b}
		},
		"cut short": func(n uint64, _ Said) Heard { return Heard{Epoch: 1, Levels: honest[:int(n)%len(honest)]} },
		"huge": func(n uint64, _ Said) Heard {
			return Heard{Epoch: 1, Levels: encoded(Version{1, n}, 1, 1e15, 1e15, Level{Rate: 1e15, Marginal: -1, Share: 1e15})}
		},
		"zero": func(n uint64, _ Said) Heard {
			return Heard{Epoch: 1, Levels: encoded(Version{1, n}, maxTasks, 0, 0, Level{Marginal: 3})}
		},
		"one task, all idle": func(n uint64, _ Said) Heard {
			return Heard{Epoch: 1, Levels: encoded(Version{1, n}, 1, 0, 1e15, Level{Rate: 1e15, Debt: 1e15, Marginal: 0, Share: 1e15})}
		},
		"not a number": func(n uint64, _ Said) Heard {
			b := encoded(Version{1, n}, 20, 1, 1, Level{Rate: 1, Marginal: -1, Share: 1})
			for i := 0; i+4 <= len(b)-30; i++ {
				binary.LittleEndian.PutUint32(b[30+i-i%4:], math.Float32bits(float32(math.NaN())))
			}
			return Heard{Epoch: 1, Levels: b}
		},
		"stale":              func(uint64, Said) Heard { return Heard{Epoch: 1, Levels: honest} },
		"last epoch":         func(n uint64, _ Said) Heard { return Heard{Epoch: maxEpoch, Levels: honest} },
		"wild epochs":        func(n uint64, _ Said) Heard { return Heard{Epoch: r.Uint64(), Leader: n%2 == 0, Levels: honest} },
		"a leader of nobody": func(n uint64, _ Said) Heard { return leads(n) },
		"wild clocks": func(_ uint64, s Said) Heard {
			now := time.Duration(r.Uint64())
			return Heard{Now: now, Epoch: 1, Leader: true, Reports: []Stamped{{"a", time.Duration(r.Uint64()), s.Report}, {"b", now, s.Report}}}
		},
		"greedy reports": func(n uint64, _ Said) Heard {
			b := newReport(report{incarnation: 1, seq: n})
			b = appendUsage(b, &usage{name: "mail", used: 1e15 * float64(n), wants: [4]float64{1e15, 1e15, 1e15, 1e15}})
			return leads(n, Stamped{"greedy", time.Duration(n) * 200 * ms, b})
		},
	}
}

// Whatever a board says, no task stops, and none goes beyond the configured limit.
func TestHostileBoards(t *testing.T) {
	race.SkipOneGoroutine(t)
	limits := quota.LocalConfig{
		Customers:    map[string]quota.Limit{"mail": {Rate: 1000}, "listed": {Rate: 400}},
		DefaultLimit: quota.Limit{Rate: 200},
	}
	for name, says := range boards() {
		f, err := New(Config{Tasks: 20, Limits: limits})
		if err != nil {
			t.Fatal(err)
		}
		gate, err := quota.New(quota.Config{Allocator: f})
		if err != nil {
			t.Fatal(err)
		}
		n := uint64(0)
		board := liar(func(s Said) (Heard, error) { n++; return says(n, s), nil })
		admitted := map[string]float64{}
		const seconds = 20
		for at := time.Duration(0); at < seconds*time.Second; at += ms {
			now := t0.Add(at)
			if at%(200*ms) == 0 {
				_ = f.Sync(context.Background(), now, board)
			}
			for customer := range map[string]float64{"mail": 1000, "listed": 400, "unlisted": 200} {
				for range 3 {
					if _, err := gate.Admit(now, spillway.Call{Customer: customer}); err == nil {
						admitted[customer]++
					}
				}
			}
		}
		for customer, limit := range map[string]float64{"mail": 1000, "listed": 400, "unlisted": 200} {
			if got, most := admitted[customer], limit*(seconds+1)+1; got > most || got < limit*seconds/20/10/10 {
				t.Errorf("%s: %s had %v calls in %d s, want at most %v and not none", name, customer, got, seconds, most)
			}
		}
	}
}

// A task that had a stale word, and then none that is new, has the configured fallback.
func TestStaleBoardLeavesTheFallback(t *testing.T) {
	f, err := New(mail(1000))
	if err != nil {
		t.Fatal(err)
	}
	greedy := encoded(Version{9, 9}, 1, 1, 0, Level{Rate: 1e6, Marginal: -1, Share: 1e6})
	board := liar(func(Said) (Heard, error) { return Heard{Epoch: 9, Levels: greedy}, nil })
	var g quota.Grant
	for at := time.Duration(0); at <= 11*time.Second; at += 200 * ms {
		_ = f.Sync(context.Background(), t0.Add(at), board)
		g = f.Lease(t0.Add(at), quota.Demand{Customer: "mail", Elapsed: 200 * ms, Offered: [4]float64{2: 600}})
		if at == time.Second && g.Rate < 500 {
			t.Errorf("a word that is new is ignored: %+v", g)
		}
	}
	if g.Rate > 50.001 || g.Rate < 49.999 {
		t.Errorf("without a new word for 11 s the grant is %v, want limit/Tasks, 50", g.Rate)
	}
}

// A client that invents names gets no more than DefaultLimit for MaxUnlisted names and the name "". It
// costs customers that were there before nothing.
func TestInventedNamesCostOthersNothing(t *testing.T) {
	race.SkipOneGoroutine(t)
	const names, rate, seconds = 100, 10, 20
	f, err := New(Config{Tasks: 1, MaxUnlisted: names, Limits: quota.LocalConfig{DefaultLimit: quota.Limit{Rate: rate}}})
	if err != nil {
		t.Fatal(err)
	}
	gate, err := quota.New(quota.Config{Allocator: f, MaxUnlisted: names})
	if err != nil {
		t.Fatal(err)
	}
	at := t0
	board := NewMemory(func() time.Time { return at })
	admit := func(customer string) float64 {
		if _, err := gate.Admit(at, spillway.Call{Customer: customer}); err != nil {
			return 0
		}
		return 1
	}
	invented, honest, asked := 0., 0., 0.
	for step := range seconds * 20 { // of 50 ms
		at = at.Add(50 * ms)
		if step%4 == 0 {
			_ = f.Sync(context.Background(), at, board)
			for c := range 20 { // 5 calls per second each
				asked++
				honest += admit(fmt.Sprint("honest-", c))
			}
		}
		for n := range 50 { // 1000 names per second
			invented += admit(fmt.Sprint("invented-", step*50+n))
		}
	}
	if honest < 0.98*asked {
		t.Errorf("%v of %v calls of honest customers are admitted", honest, asked)
	}
	if most := float64((names + 1) * rate * (seconds + 1)); invented > most {
		t.Errorf("%v calls under invented names are admitted, want at most %v", invented, most)
	}
	if s := f.Stats(at); s.Customers > names+1 {
		t.Errorf("%d customers are reported, want at most %d", s.Customers, names+1)
	}
}

// A board that claimed an absurd epoch is forgotten after Grace, and honest boards are
// not told of it.
func TestRecoversFromAbsurdEpoch(t *testing.T) {
	f, err := New(mail(1000))
	if err != nil {
		t.Fatal(err)
	}
	lie := liar(func(Said) (Heard, error) { return Heard{Epoch: maxEpoch}, nil })
	_ = f.Sync(context.Background(), t0, lie)
	at := t0
	honest := NewMemory(func() time.Time { return at })
	for range 100 {
		at = at.Add(200 * ms)
		f.Lease(at, quota.Demand{Customer: "mail"})
		_ = f.Sync(context.Background(), at, honest)
	}
	if s := f.Stats(at); s.Epoch == 0 || s.Epoch > 10 || s.Age > time.Second {
		t.Errorf("after an absurd epoch: %+v", s)
	}
}
