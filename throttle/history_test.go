package throttle_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/throttle"
)

// A caller makes calls as package egress does, at explicit times.
type caller struct {
	*rand.Rand
	routes          *throttle.Routes
	advice          float64 // the accept ratio in one answer of four; 1 for none
	now             time.Time
	pending         sentCalls
	offered, passed int
}

func newCaller(t testing.TB, seed uint64, k float64) *caller {
	t.Helper()
	race.SkipOneGoroutine(t)
	r := rand.New(rand.NewPCG(seed, 77))
	routes, err := throttle.NewRoutes(throttle.Config{K: k, Rand: r.Float64})
	if err != nil {
		t.Fatal(err)
	}
	return &caller{Rand: r, routes: routes, now: t0, advice: 1}
}

// until brings the time to at.
func (c *caller) until(at time.Time) {
	for end := at.Sub(t0); c.pending.next(end); {
		c.end(c.pending.pop())
	}
	c.now = at
}

func (c *caller) end(f *sentCall) {
	if f.outcome.Accepted() {
		ratio := 1.
		if c.advice < 1 && c.IntN(4) == 0 {
			ratio = c.advice
		}
		c.routes.Advise(f.sent, f.ticket.Criticality, ratio)
	}
	c.routes.Settle(f.sent, f.ends, &f.ticket, f.route, f.outcome)
}

// call makes a call that ends with an outcome after a time, and reports whether it is sent.
func (c *caller) call(class spillway.Criticality, route string, o spillway.Outcome, took time.Duration) bool {
	r := throttle.Route{Name: route}
	c.offered++
	ticket, err := c.routes.Admit(c.now, spillway.Call{Criticality: class, Key: route}, r)
	if err != nil {
		return false
	}
	c.passed++
	f := sentCall{c.now, c.now.Add(took), ticket, r, o}
	if took == 0 {
		c.end(&f)
		return true
	}
	c.pending.push(f)
	return true
}

// offer makes calls at a steady rate for some time, and returns the share that is sent.
func (c *caller) offer(rate float64, d time.Duration, call func()) float64 {
	c.offered, c.passed = 0, 0
	gap, end := time.Duration(float64(time.Second)/rate), c.now.Add(d)
	for at := c.now.Add(gap); at.Before(end); at = at.Add(gap) {
		c.until(at)
		call()
	}
	c.until(end)
	return float64(c.passed) / float64(max(c.offered, 1))
}

// log returns a number between two; each order of magnitude is as likely as the others.
func (c *caller) log(from, to float64) float64 { return from * math.Pow(to/from, c.Float64()) }

func (c *caller) seconds(most float64) time.Duration {
	return time.Duration(c.Float64() * most * float64(time.Second))
}

// A past is what a caller did before the backend recovered.
type past struct {
	*caller
	routes  int
	classes int
	slowest float64 // seconds that a call may take
	text    string
}

func (p *past) route() string               { return []string{"GET /", "", "GET /a"}[min(p.IntN(p.routes), 2)] }
func (p *past) class() spillway.Criticality { return spillway.Criticality(p.IntN(p.classes)) }

// outcomes returns a source of outcomes. A random share are good.
func (p *past) outcomes() func() spillway.Outcome {
	bad := []spillway.Outcome{
		spillway.OutcomeOverloaded, spillway.OutcomeOverloaded, spillway.OutcomeTimedOut, spillway.OutcomeFailed,
		spillway.OutcomeAbandoned, spillway.OutcomeNotStarted, spillway.OutcomeOverQuota,
	}
	good, which := []float64{0, 1, p.Float64()}[p.IntN(3)], bad[p.IntN(len(bad))]
	p.text += fmt.Sprintf(" %v, %.2f good;", which, good)
	return func() spillway.Outcome {
		switch {
		case p.Float64() < good:
			return spillway.OutcomeServed
		case p.IntN(20) == 0:
			return bad[p.IntN(len(bad))]
		}
		return which
	}
}

// happen makes some periods of calls, and bursts: calls at one instant, which mostly end at one.
func (p *past) happen() {
	for range 1 + p.IntN(6) {
		outcome := p.outcomes()
		if p.IntN(3) > 0 {
			rate := p.log(1, 10000)
			d := min(p.log(0.01, 60), 10000/rate)
			p.text += fmt.Sprintf(" at %.0f/s for %.2f s,", rate, d)
			p.offer(rate, time.Duration(d*float64(time.Second)), func() { p.call(p.class(), p.route(), outcome(), p.seconds(p.slowest)) })
			continue
		}
		p.text += " at one instant,"
		took := p.seconds(p.slowest)
		for range int(p.log(1, 5000)) {
			d := took
			if p.IntN(10) == 0 {
				d = p.seconds(p.slowest)
			}
			p.call(p.class(), p.route(), outcome(), d)
		}
		p.until(p.now.Add(p.seconds(p.slowest)))
	}
}

// recovery returns how long it takes until 99 % of the calls of each second are sent, when the
// backend accepts all of them, and how long that takes as a rule: see benchmarkRecovery.
func recovery(t testing.TB, seed uint64) (took, most float64, text string) {
	t.Helper()
	p := &past{caller: newCaller(t, seed, 2)}
	p.routes, p.classes = 1+p.IntN(3), []int{1, 1, 4}[p.IntN(3)]
	p.slowest = []float64{0, p.log(1e-4, 2), p.log(1e-4, 2)}[p.IntN(3)]
	if p.IntN(3) == 0 {
		p.advice = p.Float64()
	}
	p.happen()
	rate := p.log(1, 10000)
	if p.advice < 1 { // for fewer calls a ratio rejects some
		rate = p.log(20, 10000)
	}
	latency := p.log(1e-4, 2)
	route, class := p.route(), p.class()
	for second, good := 1., 0; second <= 60 && good < 5; second++ {
		good++
		if p.offer(rate, time.Second, func() { p.call(class, route, spillway.OutcomeServed, time.Duration(latency*1e9)) }) < 0.99 {
			took, good = second, 0
		}
	}
	return took, 5 + p.slowest + 16*latency, fmt.Sprintf("%s then %.0f/s that take %.4f s", p.text, rate, latency)
}

// TestRecoversFromAnything: whatever happened before, when the backend accepts all calls, 99 % of
// them are sent within a minute, and as a rule much sooner: see benchmarkRecovery. BenchmarkFigures
// has how many recoveries take longer than that.
func TestRecoversFromAnything(t *testing.T) {
	seeds := uint64(300)
	if testing.Short() {
		seeds = 30
	}
	late := uint64(0)
	for seed := range seeds {
		took, most, text := recovery(t, seed)
		if took >= 60 {
			t.Errorf("seed %d: calls are rejected a minute after the recovery:%s", seed, text)
		}
		if took > most {
			late++
		}
	}
	if late > seeds/10 {
		t.Errorf("%d of %d recoveries are late, which is no exception", late, seeds)
	}
}

// A limit of few calls per second, from a time in which few were made and accepted, ends soon
// where many are made, and all are accepted.
func TestRecoversWithManyMoreCalls(t *testing.T) {
	for _, rate := range []float64{1000, 3000, 10000} {
		c := newCaller(t, 1, 2)
		c.offer(100, 5*time.Second, func() { c.call(spillway.Critical, "", spillway.OutcomeServed, time.Millisecond) })
		for range 3 { // half of few calls are accepted, then none
			c.offer(2, 10*time.Second, func() {
				c.call(spillway.Critical, "", []spillway.Outcome{spillway.OutcomeServed, spillway.OutcomeOverloaded}[c.IntN(2)], time.Millisecond)
			})
			c.offer(6, 20*time.Second, func() { c.call(spillway.Critical, "", spillway.OutcomeTimedOut, time.Second) })
		}
		text, last := "", 0.
		for range 10 {
			last = c.offer(rate, time.Second, func() { c.call(spillway.Critical, "", spillway.OutcomeServed, time.Second/2) })
			text += fmt.Sprintf(" %.2f", last)
		}
		if last < 0.99 {
			t.Errorf("of %v calls/s, all of which are accepted, are sent:%s", rate, text)
		}
	}
}

// afterAMoment returns for each seed how many of 2,240 calls per second are sent 6 to 10 s after
// a moment in which a backend rejected all calls, 10 s after the first one. rejects says which
// calls it also rejects.
func afterAMoment(t testing.TB, seeds uint64, rejects func(c *caller, sent bool, at time.Duration) bool) (shares []float64) {
	t.Helper()
	const perSecond, moment = 2240, 10 * time.Second
	for seed := range seeds {
		c := newCaller(t, seed, 2)
		call := func() {
			at, o := c.now.Sub(t0), spillway.OutcomeServed
			if rejects(c, false, at) || at > moment && at < moment+300*time.Millisecond {
				o = spillway.OutcomeOverloaded
			}
			if c.call(spillway.Critical, "", o, 20*time.Millisecond) {
				rejects(c, true, at)
			}
		}
		c.offer(perSecond, moment+6*time.Second, call)
		shares = append(shares, c.offer(perSecond, 4*time.Second, call))
	}
	return shares
}

// below returns how many shares are below one.
func below(shares []float64, one float64) (n int) {
	for _, x := range shares {
		if x < one {
			n++
		}
	}
	return n
}

// afterOneRejectsOn is afterAMoment with one task of four that rejects the calls above its capacity,
// which is a quarter of that of each of the others.
func afterOneRejectsOn(t testing.TB, seeds uint64) []float64 {
	t.Helper()
	const ofWeak = 200
	tokens, filled, weak := 0., t0, false
	return afterAMoment(t, seeds, func(c *caller, sent bool, at time.Duration) bool {
		switch {
		case sent && weak && tokens >= 1:
			tokens--
		case !sent:
			if c.now.Before(filled) { // another seed
				filled = t0
			}
			tokens, filled = min(tokens+ofWeak*c.now.Sub(filled).Seconds(), 10), c.now
			weak = c.IntN(4) == 0
		}
		return at > 5*time.Second && weak && tokens < 1
	})
}

// afterOneIsDead is afterAMoment with one task of four that rejects all calls.
func afterOneIsDead(t testing.TB, seeds uint64) []float64 {
	t.Helper()
	return afterAMoment(t, seeds, func(c *caller, sent bool, at time.Duration) bool {
		return !sent && c.IntN(4) == 0 && at > 5*time.Second
	})
}

// After a moment in which all tasks of a backend reject all calls, one of four tasks goes on to
// reject some. Nearly all calls are sent again soon in most runs: where the first rejection ends a
// ramp or a rise, 9 and 39 % of the runs send fewer. BenchmarkFigures has how many do here.
func TestOneTaskOfFourRejectsOn(t *testing.T) {
	const seeds = 100
	for name, row := range map[string]struct {
		shares []float64
		least  float64 // share of the calls that are sent
		most   int     // runs that send less
	}{
		"above its capacity": {afterOneRejectsOn(t, seeds), 0.99, seeds / 20},
		"everything":         {afterOneIsDead(t, seeds), 0.95, seeds / 4},
	} {
		if n := below(row.shares, row.least); n > row.most {
			t.Errorf("one task rejects %s: %d of %d runs sent less than %v: %.2f", name, n, seeds, row.least, row.shares)
		}
	}
}
