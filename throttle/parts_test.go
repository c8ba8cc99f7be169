package throttle

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// config is the default one, with intervals of half a second.
func config(t *testing.T) *Config {
	t.Helper()
	c, err := Config{ProbeInterval: time.Second / 2}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return &c
}

// The parts of the rule at the values at which they change what they do.

func TestLimiterIdle(t *testing.T) {
	cfg := config(t)
	l := limiter{settled: time.Second, limit: 5}
	if l.idle(cfg, time.Second+cfg.Window); l.limit != 5 {
		t.Error("a Window after the last outcome all is forgotten")
	}
	if l.idle(cfg, time.Second+cfg.Window+1); l != (limiter{settled: time.Second + cfg.Window + 1}) {
		t.Errorf("later than that %+v is known", l)
	}
}

// A rejection of a call that was sent with the first of a streak ends the streak.
func TestLimiterReject(t *testing.T) {
	for sent, ends := range map[time.Duration]bool{5*time.Second - 1: false, 5 * time.Second: true} {
		l := limiter{phase: steady, limit: 10, streak: streak{accepts: 3, since: 5 * time.Second, sent: 5 * time.Second}}
		if l.notAccepted(config(t), 6*time.Second, sent, 0); (l.streak == streak{}) != ends {
			t.Errorf("sent at %v: %+v", sent, l.streak)
		}
	}
}

// Accepts of the last Window allow a burst of rejections.
func TestLimiterOverspent(t *testing.T) {
	cfg := config(t)
	l := limiter{accepted: time.Second, debt: run{since: cfg.Window, sent: float64(cfg.MinRequests)}}
	if l.overspent(cfg, time.Second+cfg.Window) || !l.overspent(cfg, time.Second+cfg.Window+1) {
		t.Error("accepts count for a Window, and not longer")
	}
}

// While trouble goes on, the highest limit before it is known; trouble that begins half a
// Window later is another one.
func TestLimiterFall(t *testing.T) {
	cfg := config(t)
	for _, row := range []struct {
		phase        phase
		at           time.Duration
		former, want float64
	}{
		{steady, cfg.Window / 2, 100, 100}, {steady, cfg.Window / 2, 1, 20}, {steady, cfg.Window/2 + 1, 100, 20}, {silent, cfg.Window, 1, 1},
	} {
		l := limiter{phase: row.phase, former: row.former}
		if l.fall(cfg, row.at, 10); l.former != row.want || l.wasOpen {
			t.Errorf("%+v: from %v to %v", row, row.former, l.former)
		}
	}
}

// The ramp multiplies the calls of one interval, up to what was known before.
func TestLimiterRamp(t *testing.T) {
	cfg := config(t)
	for _, row := range []struct {
		former, limit float64
		releases      bool
		phase         phase
	}{{33, 32, true, silent}, {32, 32, false, steady}, {1, 2, false, steady}} {
		l := limiter{phase: silent, former: row.former, streak: streak{accepts: 2, sent: 3 * time.Second}}
		if got := l.ramp(cfg, 4*time.Second); got != row.releases || l.limit != row.limit || l.phase != row.phase {
			t.Errorf("%+v: %v, %+v", row, got, l)
		}
		if l.changed >= 3*time.Second {
			t.Errorf("the first call of the streak is from before %v", l.changed)
		}
	}
}

func TestLimiterRise(t *testing.T) {
	l := limiter{phase: rising, limit: unlimited / 2}
	if l.rise(1); l.phase != rising || l.limit != unlimited {
		t.Errorf("at the greatest limit: %+v", l)
	}
	if l.rise(2); l.phase != open {
		t.Errorf("above it: %+v", l)
	}
}

// A ramp that ends before its first accept keeps its limit.
func TestLimiterStop(t *testing.T) {
	l := limiter{phase: silent, limit: 7}
	if l.stop(config(t), time.Second); l.limit != 7 {
		t.Errorf("a limit of %v, want 7", l.limit)
	}
}

// Silence begins a Window after the last accept, or if next to nothing is admitted. A low limit
// rises to one call in an interval, in ten Windows.
func TestLimiterPass(t *testing.T) {
	cfg := config(t)
	for _, row := range []struct {
		at            time.Duration
		limit, demand float64
		phase         phase
		want          float64
	}{
		{cfg.Window, 5, 0, steady, 5}, {cfg.Window + 1, 5, 0, silent, 5},
		{0, 5, 1000, steady, 5}, {0, 5, 1001, silent, 5},
		{0, 1, 0, steady, 1.1}, {0, 2, 0, steady, 2}, {0, 3, 0, steady, 3},
	} {
		l := limiter{phase: steady, limit: row.limit, demand: row.demand}
		if l.pass(cfg, row.at, cfg.Window); l.phase != row.phase || l.limit != row.want {
			t.Errorf("%+v: %+v", row, l)
		}
	}
}

func TestPaceAtItsBounds(t *testing.T) {
	p := pace{gaps: 10, mean: 1}
	if p.call(5 * time.Second); p.gaps != 11 {
		t.Errorf("a gap of five means begins anew: %+v", p)
	}
	p = pace{gaps: 10, mean: 1}
	if p.call(5*time.Second + 1); p.gaps != 1 {
		t.Errorf("a longer gap does not: %+v", p)
	}
	if r := (&pace{gaps: 2}).rate(); r != 0 {
		t.Errorf("calls at one instant have the rate %v", r)
	}
}

// The latest time never goes back; a clock that is set back by more than a second goes on from
// where it was.
func TestClockAtItsBounds(t *testing.T) {
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for back, skewed := range map[time.Duration]bool{time.Second: false, time.Second + 1: true} {
		var c clock
		c.read(base)
		latest := c.read(base.Add(5 * time.Second))
		if c.read(base.Add(5*time.Second - resolution/2)); c.latest.Load() != int64(latest) {
			t.Error("the latest time went back")
		}
		if got := c.read(base.Add(5*time.Second - back)); (got == latest) != skewed || (c.skew.Load() != 0) != skewed {
			t.Errorf("%v back: %v after %v", back, got, latest)
		}
	}
}

// A random number equal to the probability lets a call pass.
func TestCallAtTheProbability(t *testing.T) {
	for name, c := range map[string]*class{
		"by credit": {cfg: *config(t), credit: 1, limiter: limiter{phase: steady}},
		"by advice": {cfg: *config(t), advice: advice{ratio: 0.5, until: 1}},
	} {
		c.share.Store(math.Float64bits(0.5))
		c.until.Store(10)
		if c.reject(5, 0.5, 0.5) || !c.reject(5, 0.5, 0.49) {
			t.Errorf("%s: rejected without the lock", name)
		}
		if !c.take(5, 0.5) || c.credit != 0 {
			t.Errorf("%s: not admitted", name)
		}
	}
}

// Calls at the rate of the limit are all sent, whatever credit is left.
func TestRateAtTheLimit(t *testing.T) {
	c := &class{cfg: *config(t), rate: 10, limiter: limiter{phase: steady, limit: 10}}
	c.mu.Lock()
	c.decide()
	c.mu.Unlock()
	if p := c.probability(); p != 0 {
		t.Errorf("rejected with the probability %v", p)
	}
}

// The usual latency begins with the first call, and explains a timeout of more than ten times.
func TestLatencyAtItsBounds(t *testing.T) {
	const sent = time.Minute
	var l latency
	l.served.Store(int64(sent + time.Hour))
	if l.explains(sent, time.Hour) {
		t.Error("an unknown latency explains a timeout")
	}
	if l.add(sent, 160*time.Millisecond); time.Duration(l.usual.Load()) != 160*time.Millisecond {
		t.Errorf("after one call: %v", time.Duration(l.usual.Load()))
	}
	if l.add(sent, 320*time.Millisecond); time.Duration(l.usual.Load()) != 170*time.Millisecond {
		t.Errorf("after two: %v, want 170ms", time.Duration(l.usual.Load()))
	}
	for waited, want := range map[time.Duration]bool{170*time.Millisecond - 1: true, 170 * time.Millisecond: false, 1700 * time.Millisecond: false, 1700*time.Millisecond + 1: true} {
		if l.explains(sent, waited) != want {
			t.Errorf("a wait of %v is explained: %v", waited, !want)
		}
	}
	var a activity
	for _, at := range []interface{ Store(int64) }{&a.served, &a.limited} {
		at.Store(int64(sent))
		if a.explains(sent, longWait) {
			t.Error("what was at the same time explains a wait")
		}
		at.Store(int64(sent) + 1)
		if !a.explains(sent, longWait) {
			t.Error("what was later does not explain it")
		}
		at.Store(0)
	}
	later(&a.served, sent, 0)
	for _, row := range []struct{ at, want time.Duration }{{time.Second, 0}, {time.Second + 1, time.Second + 1}, {0, time.Second + 1}} {
		if later(&a.served, sent+row.at, time.Second); a.served.Load() != int64(sent+row.want) {
			t.Errorf("at %v: %v", row.at, time.Duration(a.served.Load())-sent)
		}
	}
}

// An Update reaches the throttles of all routes and customers, and a wrong one none.
func TestAllRoutes(t *testing.T) {
	routes, err := NewRoutes(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(MaxRoutes) {
		for _, p := range [...]*places{&routes.routes, &routes.customers} {
			p.add(i+1, 1, *routes.config.Load(), &routes.limited, func() string { return fmt.Sprint("name ", i) })
		}
	}
	if err := routes.Update(Config{K: 3}); err != nil {
		t.Fatal(err)
	}
	if err := routes.Update(Config{K: 1}); err == nil {
		t.Fatal("a wrong configuration is taken")
	}
	all := []*classes{&routes.backend, &routes.others}
	for _, p := range [...]*places{&routes.routes, &routes.customers} {
		for _, x := range p.load().order {
			all = append(all, &x.classes)
		}
	}
	for _, x := range all {
		if k := x[0].cfg.K; k != 3 {
			t.Errorf("K is %v", k)
		}
	}
	if len(all) != 2+2*MaxRoutes {
		t.Errorf("%d throttles", len(all))
	}
}
