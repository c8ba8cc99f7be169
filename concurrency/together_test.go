package concurrency

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/race"
)

// site drives a Limiter in explicit time: keys send to pools, at random times and with exponential times of service.
type site struct {
	l     *Limiter
	now   time.Time
	rng   *rand.Rand
	pools [3]struct {
		slots int // 0: no request waits
		queue []waiting
		busy  []waiting
	}
	sent     map[string]int
	rejected map[string]int
}

// source is a key and what it sends.
type source struct {
	key       string
	pool      int
	perSecond float64
	service   time.Duration
	least     time.Duration // of service, in addition
	names     int           // it sends with so many names, its key in front
}

type waiting struct {
	ticket  spillway.Ticket
	service time.Duration
	ends    time.Time
}

func newSite(tb testing.TB, seed uint64, slots ...int) *site {
	race.SkipOneGoroutine(tb)
	s := &site{l: must(tb, Config{}), now: t0, rng: rand.New(rand.NewPCG(seed, 9))}
	for i, n := range slots {
		s.pools[i].slots = n
	}
	s.forget()
	return s
}

func (s *site) forget() { s.sent, s.rejected = map[string]int{}, map[string]int{} }

// run lets the sources send for d.
func (s *site) run(d time.Duration, sources ...source) {
	for end := s.now.Add(d); s.now.Before(end); s.now = s.now.Add(time.Millisecond) {
		s.finish()
		for _, from := range sources {
			for s.rng.Float64() < from.perSecond/(1000+from.perSecond) {
				s.send(from)
			}
		}
		s.start()
	}
}

func (s *site) send(from source) {
	name := from.key
	if from.names > 0 {
		name += fmt.Sprint(s.rng.IntN(from.names))
	}
	s.sent[from.key]++
	t, err := s.l.Admit(s.now, call(name))
	if err != nil {
		s.rejected[from.key]++
		return
	}
	took := from.least + time.Duration(s.rng.ExpFloat64()*float64(from.service))
	s.pools[from.pool].queue = append(s.pools[from.pool].queue, waiting{ticket: t, service: took})
}

func (s *site) start() {
	for i := range s.pools {
		p := &s.pools[i]
		for len(p.queue) > 0 && (p.slots == 0 || len(p.busy) < p.slots) {
			w := p.queue[0]
			w.ends = s.now.Add(w.service)
			p.queue, p.busy = p.queue[1:], append(p.busy, w)
		}
	}
}

func (s *site) finish() {
	for i := range s.pools {
		p := &s.pools[i]
		left := p.busy[:0]
		for _, w := range p.busy {
			if w.ends.After(s.now) {
				left = append(left, w)
			} else {
				w.ticket.Settle(s.now, spillway.OutcomeServed)
			}
		}
		p.busy = left
	}
}

// queued returns how many wait for the first pool.
func (s *site) queued() int { return len(s.pools[0].queue) }

const ms = time.Millisecond

// Keys that wait for nothing are not limited with keys of an overloaded pool, whatever takes its time
// there, and whenever they come.
func TestInnocentKeys(t *testing.T) {
	over := source{key: "over", perSecond: 1200, service: 20 * ms}
	half := source{key: "half", perSecond: 600, service: 20 * ms}
	other := source{key: "other", perSecond: 600, service: 20 * ms}
	for name, row := range map[string]struct {
		guilty   []source
		innocent source
		later    bool
	}{
		"1 ms":                     {[]source{over}, source{key: "in", pool: 1, perSecond: 2000, service: ms}, false},
		"30 ms":                    {[]source{over}, source{key: "in", pool: 1, perSecond: 1000, service: 30 * ms}, false},
		"50 ms, 40 names":          {[]source{over}, source{key: "in", pool: 1, perSecond: 500, service: 50 * ms, names: 40}, false},
		"rare":                     {[]source{over}, source{key: "in", pool: 1, perSecond: 5, service: 30 * ms}, false},
		"comes later":              {[]source{over}, source{key: "in", pool: 1, perSecond: 1000, service: 30 * ms}, true},
		"beside two":               {[]source{half, other}, source{key: "in", pool: 1, perSecond: 400, service: 30 * ms}, false},
		"beside two, its own pool": {[]source{half, other}, source{key: "in", pool: 2, perSecond: 320, service: 30 * ms}, false},
	} {
		t.Run(name, func(t *testing.T) {
			rejected, sent := 0, 0
			for seed := range uint64(4) {
				s := newSite(t, seed, 8, 0, 16)
				if row.later {
					s.run(5*time.Second, row.guilty...)
				}
				s.run(5*time.Second, append(row.guilty, row.innocent)...)
				rejected, sent = rejected+s.rejected["in"], sent+s.sent["in"]
				if n := s.queued(); n > 48 {
					t.Errorf("seed %d: %d wait for the pool", seed, n)
				}
			}
			if rejected*20 > sent {
				t.Errorf("%d of %d innocent requests were rejected", rejected, sent)
			}
		})
	}
}

// A key that was idle when the limit was found, and so is not known, is not limited when it comes again.
func TestInnocentKeyComesBack(t *testing.T) {
	in := source{key: "in", pool: 1, perSecond: 1000, service: 30 * ms}
	over := source{key: "over", perSecond: 200, service: 20 * ms}
	s := newSite(t, 1, 8, 0)
	s.run(2*time.Second, in, over)
	s.run(12*time.Second, over)
	over.perSecond = 1200
	s.run(3*time.Second, over)
	if !s.l.Stats(s.now).Tightest().Limiting() {
		t.Fatal("no limit")
	}
	s.run(3*time.Second, in, over)
	if n := s.rejected["in"]; n > 0 {
		t.Errorf("%d of %d innocent requests were rejected", n, s.sent["in"])
	}
}

// The keys of one pool share a limit, or each has its own. What waits for the pool is bounded in either case, and a key that waits for
// something else is not rejected. In one run of ten chance decides otherwise.
func TestKeysThatWaitTogether(t *testing.T) {
	const runs = 40
	for name, row := range map[string][]source{
		"alike":          {{key: "a", perSecond: 600, service: 20 * ms}, {key: "b", perSecond: 600, service: 20 * ms}},
		"quick and slow": {{key: "a", perSecond: 2400, service: 5 * ms}, {key: "b", perSecond: 240, service: 50 * ms}},
		"many and few":   {{key: "a", perSecond: 1600, service: 20 * ms}, {key: "b", perSecond: 200, service: 20 * ms}},
		"beside another": {
			{key: "a", perSecond: 600, service: 20 * ms}, {key: "b", perSecond: 600, service: 20 * ms},
			{key: "c", pool: 1, perSecond: 400, service: 30 * ms},
		},
		"40 keys of both": {{key: "a", perSecond: 600, service: 20 * ms, names: 20}, {key: "b", perSecond: 600, service: 20 * ms, names: 20}},
	} {
		t.Run(name, func(t *testing.T) {
			var wrong []string
			for seed := range uint64(runs) {
				s := newSite(t, seed, 8, 0)
				s.run(5*time.Second, row...)
				if n := s.queued(); n > 48 {
					wrong = append(wrong, fmt.Sprintf("seed %d: %d wait for the pool", seed, n))
				}
				if s.rejected["c"]*20 > s.sent["c"] {
					wrong = append(wrong, fmt.Sprintf("seed %d: %d of %d innocent requests were rejected", seed, s.rejected["c"], s.sent["c"]))
				}
			}
			if len(wrong) > runs/10 {
				t.Errorf("%d of %d runs: %s", len(wrong), runs, strings.Join(wrong, "; "))
			}
		})
	}
}

// Two pools that become overloaded in the same moment get a limit each in most runs; in the others all keys share one, until it ends.
func TestTwoPoolsAtOnce(t *testing.T) {
	const runs = 400
	separate := 0
	for seed := range uint64(runs) {
		s := newSite(t, seed, 8, 16)
		s.run(2*time.Second, source{key: "a", perSecond: 200, service: 20 * ms}, source{key: "b", pool: 1, perSecond: 160, service: 50 * ms})
		s.run(3*time.Second, source{key: "a", perSecond: 1200, service: 20 * ms}, source{key: "b", pool: 1, perSecond: 480, service: 50 * ms})
		s.forget()
		s.run(5*time.Second, source{key: "a", perSecond: 1200, service: 20 * ms}, source{key: "b", pool: 1, perSecond: 480, service: 50 * ms})
		share := float64(s.rejected["b"]) / float64(s.sent["b"])
		if share < 0.4 { // a third need be
			separate++
		}
	}
	if separate < runs/2 {
		t.Errorf("a limit each in %d of %d runs, want half", separate, runs)
	}
}

// A key with many requests gets a place and a limit soon, if all places are taken by others that have few.
func TestOverloadBehindManyNames(t *testing.T) {
	for seed := range uint64(4) {
		s := newSite(t, seed, 8, 0)
		many := source{key: "n", pool: 1, perSecond: 1000, service: 30 * ms, names: 1000}
		s.run(3*time.Second, many)
		s.run(6*time.Second, many, source{key: "over", perSecond: 1200, service: 20 * ms})
		if n := s.queued(); n > 150 { // without a limit it would be 4800
			t.Errorf("seed %d: %d wait for the pool", seed, n)
		}
		if s.rejected["n"]*20 > s.sent["n"] {
			t.Errorf("seed %d: %d of %d requests of the others were rejected", seed, s.rejected["n"], s.sent["n"])
		}
	}
}

// A limit of all keys ends when the keys that it is for have stopped.
func TestLimitOfKeysThatStopped(t *testing.T) {
	for seed := range uint64(4) {
		s := newSite(t, seed, 8, 2)
		b, c := source{key: "b", pool: 1, perSecond: 10, service: 50 * ms}, source{key: "c", pool: 1, perSecond: 10, service: 50 * ms}
		s.run(5*time.Second, source{key: "a", perSecond: 600, service: 20 * ms}, source{key: "d", perSecond: 600, service: 20 * ms})
		s.run(2*memory, b, c)
		if st := s.l.Stats(s.now); st.Shared.State != Open {
			t.Errorf("seed %d: 20 s after their last request, all keys are %v", seed, st.Shared.State)
		}
		if n := s.rejected["b"] + s.rejected["c"]; n > 0 {
			t.Errorf("seed %d: %d were rejected that wait for another pool", seed, n)
		}
	}
}

// Keys that come while the limit of all keys is at work are one key: none of them need have enough requests to show a queue.
func TestManyKeysThatComeLater(t *testing.T) {
	for seed := range uint64(4) {
		s := newSite(t, seed, 8)
		over := source{key: "over", perSecond: 1200, service: 20 * ms, names: 2}
		s.run(5*time.Second, over)
		for round := range 10 {
			s.run(time.Second, over, source{key: fmt.Sprint("late ", round, " "), perSecond: 1200, service: 20 * ms, names: 30})
			if n := s.queued(); n > 800 { // as many as a second without a limit of theirs adds
				t.Errorf("seed %d: %d wait for the pool after %d s", seed, n, round+1)
			}
		}
	}
}
