package ratelimit

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/race"
)

const ms = time.Millisecond

var t0 = time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)

func must(t testing.TB, c Config) *Limiter {
	t.Helper()
	l, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// rejected is a wait that is not one.
const rejected = -1

// A step is n calls of Reserve at one time, each of which returns a wait.
type step struct {
	at   time.Duration
	n    int
	wait time.Duration
}

func TestRows(t *testing.T) {
	for name, row := range map[string]struct {
		config Config
		steps  []step
	}{
		"no limit":             {Config{}, []step{{0, 10000, 0}}},
		"negative is no limit": {Config{Rate: -1, QueueDepth: 3}, []step{{0, 10000, 0}}},
		"starts full, and gains a token each interval": {
			Config{Rate: 10, BurstSeconds: 0.5},
			[]step{{0, 5, 0}, {0, 1, rejected}, {99 * ms, 1, rejected}, {100 * ms, 1, 0}, {100 * ms, 1, rejected}, {350 * ms, 2, 0}, {350 * ms, 1, rejected}, {400 * ms, 1, 0}},
		},
		"never saves up more than the capacity": {
			Config{Rate: 10, BurstSeconds: 0.5},
			[]step{{time.Hour, 5, 0}, {time.Hour, 1, rejected}, {2 * time.Hour, 5, 0}, {2 * time.Hour, 1, rejected}},
		},
		"BurstSeconds is 1 by default": {Config{Rate: 7}, []step{{0, 7, 0}, {0, 1, rejected}}},
		"a slow rate saves up one": {
			Config{Rate: 0.1},
			[]step{{0, 1, 0}, {9 * time.Second, 1, rejected}, {10 * time.Second, 1, 0}},
		},
		"a fraction of a token is none": {
			Config{Rate: 10, BurstSeconds: 0.25},
			[]step{{0, 2, 0}, {49 * ms, 1, rejected}, {50 * ms, 1, 0}},
		},
		"the queue holds QueueDepth": {
			Config{Rate: 10, BurstSeconds: 0.1, QueueDepth: 3},
			[]step{{0, 1, 0}, {0, 1, 100 * ms}, {0, 1, 200 * ms}, {0, 1, 300 * ms}, {0, 1, rejected}},
		},
		"time that steps back is none": {
			Config{Rate: 10, BurstSeconds: 0.5},
			[]step{{time.Hour, 1, 0}, {0, 4, 0}, {time.Minute, 1, rejected}, {time.Hour + 100*ms, 1, 0}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := must(t, row.config)
			for i, s := range row.steps {
				for n := range s.n {
					r, err := l.Reserve(t0.Add(s.at))
					if (err != nil) != (s.wait == rejected) || err == nil && r.Wait != s.wait {
						t.Fatalf("step %d, call %d: wait %v, %v; want %v", i, n, r.Wait, err, s.wait)
					}
				}
			}
		})
	}
}

func TestGivingUpReturnsTheTokenOnce(t *testing.T) {
	l := must(t, Config{Rate: 10, BurstSeconds: 0.1, QueueDepth: 4})
	reserve := func(at, want time.Duration) *Reservation {
		t.Helper()
		r, err := l.Reserve(t0.Add(at))
		if err != nil || r.Wait != want {
			t.Fatalf("at %v: wait %v, %v; want %v", at, r.Wait, err, want)
		}
		return &r
	}
	reserve(0, 0)
	first, second, third := reserve(0, 100*ms), reserve(0, 200*ms), reserve(0, 300*ms)
	if second.End(t0.Add(50*ms)) || second.End(t0.Add(time.Hour)) {
		t.Error("who gave up was admitted")
	}
	fourth := reserve(50*ms, 250*ms) // 300 ms after the start, and not 400
	if !first.End(t0.Add(100*ms)) || !first.End(t0) {
		t.Error("the first was not admitted in its turn, or not told so twice")
	}
	for _, r := range []*Reservation{third, fourth} {
		if !r.End(t0.Add(300 * ms)) {
			t.Error("not admitted in its turn")
		}
	}
	want := Stats{AdmittedTotal: 4, QueuedTotal: 4, AbandonedTotal: 1, TimeQueued: 700 * ms, Capacity: 1}
	if got := l.Stats(t0.Add(300 * ms)); got != want {
		t.Errorf("stats %+v, want %+v", got, want)
	}
}

func TestEndBeforeTheTurnByAClockThatStepsBack(t *testing.T) {
	l := must(t, Config{Rate: 10, BurstSeconds: 0.1, QueueDepth: 1})
	_, _ = l.Reserve(t0)
	r, _ := l.Reserve(t0)
	l.Stats(t0.Add(time.Second))
	if !r.End(t0) {
		t.Error("a time that steps back took the turn away")
	}
}

// A shell waits as the documentation says to. Ten arrive at once, every third
// leaves early, and the rest come through in order at the rate.
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := must(t, Config{Rate: 10, BurstSeconds: 0.2, QueueDepth: 8})
		start := time.Now()
		var last atomic.Int64
		var admitted atomic.Int32
		for i := range 10 {
			ctx, cancel := context.WithCancel(t.Context())
			if i%3 == 2 {
				time.AfterFunc(50*ms, cancel)
			}
			go func() {
				defer cancel()
				if err := wait(ctx, l); err == nil {
					admitted.Add(1)
					last.Store(max(last.Load(), int64(time.Since(start))))
				}
			}()
			synctest.Wait()
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n, at := admitted.Load(), time.Duration(last.Load()); n != 7 || at != 800*ms {
			t.Errorf("%d admitted, the last after %v; want 7, 800ms", n, at)
		}
		s := l.Stats(time.Now())
		if s.Waiting != 0 || s.QueuedTotal != 8 || s.AbandonedTotal != 3 || s.Tokens != s.Capacity {
			t.Errorf("afterwards %+v", s)
		}
	})
}

// wait is what the owner of a clock does with a Limiter.
func wait(ctx context.Context, l *Limiter) error {
	r, err := l.Reserve(time.Now())
	if err != nil || r.Wait == 0 {
		return err
	}
	timer := time.NewTimer(r.Wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	if !r.End(time.Now()) {
		return ctx.Err()
	}
	return nil
}

func TestRejection(t *testing.T) {
	for at, want := range map[time.Duration]time.Duration{
		0: 512 * ms, 100 * ms: 512 * ms, 250 * ms: 256 * ms, 499 * ms: ms, 499*ms + 1: ms,
	} {
		l := must(t, Config{Rate: 2})
		for range 2 {
			if _, err := l.Admit(t0, spillway.Call{}); err != nil {
				t.Fatal(err)
			}
		}
		ticket, err := l.Admit(t0.Add(at), spillway.Call{})
		r, ok := errors.AsType[*spillway.RejectedError](err)
		if !ok || !errors.Is(err, spillway.ErrRejected) || r.Reason != spillway.ReasonRateLimit || r.RetryAfter != want || ticket != (spillway.Ticket{}) {
			t.Errorf("at %v: %v, want one with RetryAfter %v", at, err, want)
			continue
		}
		text := "spillway: rejected locally by ratelimit above the limit of 2 per second, for about " + want.String() + " more: more arrive"
		if !strings.HasPrefix(err.Error(), text) {
			t.Errorf("%q does not begin with %q", err, text)
		}
	}
}

// The hint is never too early, nor more than twice the wait, up to the longest there is.
func TestHint(t *testing.T) {
	_, terms := must(t, Config{Rate: 1. / 86400, QueueDepth: 1}).bucket.load()
	for wait := time.Duration(1); wait <= 48*time.Hour; wait = wait*17/16 + 1 {
		r, _ := errors.AsType[*spillway.RejectedError](terms.rejection(wait))
		if r.RetryAfter < wait || r.RetryAfter > max(ms, 2*wait) {
			t.Fatalf("a wait of %v: RetryAfter %v", wait, r.RetryAfter)
		}
	}
	if r, ok := errors.AsType[*spillway.RejectedError](terms.rejection(math.MaxInt64)); !ok || r.RetryAfter != ms<<(steps-1) {
		t.Errorf("the longest wait: %v", r)
	}
}

func TestUpdateKeepsTheShare(t *testing.T) {
	for name, row := range map[string]struct {
		from   Config
		take   int
		to     Config
		tokens float64
	}{
		"a full bucket stays full":            {Config{Rate: 10}, 0, Config{Rate: 1000, BurstSeconds: 2}, 2000},
		"an empty one stays empty":            {Config{Rate: 10}, 10, Config{Rate: 1000, BurstSeconds: 2}, 0},
		"half full stays half full":           {Config{Rate: 10}, 5, Config{Rate: 100, BurstSeconds: 4}, 200},
		"a lower rate, too":                   {Config{Rate: 1000}, 250, Config{Rate: 4}, 3},
		"owed tokens stay as many":            {Config{Rate: 10, QueueDepth: 5}, 13, Config{Rate: 1000, QueueDepth: 5}, -3},
		"as the new depth allows":             {Config{Rate: 1e6, BurstSeconds: 1e-6, QueueDepth: 100}, 101, Config{Rate: 1. / 86400, QueueDepth: 1}, -1},
		"no limit is a full bucket":           {Config{}, 50, Config{Rate: 10}, 10},
		"a full bucket becomes one of none":   {Config{Rate: 10}, 10, Config{Rate: -1}, 0},
		"the same configuration, no change":   {Config{Rate: 3}, 1, Config{Rate: 3}, 2},
		"a queue goes, those in it do not":    {Config{Rate: 10, QueueDepth: 5}, 13, Config{Rate: 10}, 0},
		"a deeper queue moves nobody in it":   {Config{Rate: 10, QueueDepth: 5}, 13, Config{Rate: 10, QueueDepth: 9}, -3},
		"a shorter burst keeps those owed":    {Config{Rate: 10, BurstSeconds: 5, QueueDepth: 5}, 53, Config{Rate: 10, QueueDepth: 5}, -3},
		"a longer burst is as full as it was": {Config{Rate: 10}, 4, Config{Rate: 10, BurstSeconds: 10}, 60},
	} {
		t.Run(name, func(t *testing.T) {
			l := must(t, row.from)
			for range row.take {
				if _, err := l.Reserve(t0); err != nil {
					t.Fatal(err)
				}
			}
			if err := l.Update(Config{Rate: math.NaN()}); err == nil {
				t.Fatal("NaN was accepted")
			}
			if err := l.Update(row.to); err != nil {
				t.Fatal(err)
			}
			if got := l.Stats(t0).Tokens; math.Abs(got-row.tokens) > 1e-6*max(1, row.tokens) {
				t.Errorf("%v tokens, want %v", got, row.tokens)
			}
		})
	}
}

func TestFailedUpdateChangesNothing(t *testing.T) {
	l := must(t, Config{Rate: 5})
	if err := l.Update(Config{Rate: 100, QueueDepth: -1}); err == nil {
		t.Fatal("QueueDepth -1 was accepted")
	}
	if s := l.Stats(t0); s.Capacity != 5 {
		t.Errorf("a failed Update left capacity %v", s.Capacity)
	}
}

func TestConfigOutOfRangeNamesTheField(t *testing.T) {
	for want, c := range map[string]Config{
		"Rate is NaN, must be 1/86400 to 1e6":                                {Rate: math.NaN()},
		"Rate is +Inf, must":                                                 {Rate: math.Inf(1)},
		"Rate is 1e+07, must":                                                {Rate: 1e7},
		"Rate is 1e-06, must":                                                {Rate: 1e-6},
		"BurstSeconds is NaN, must be above 0":                               {BurstSeconds: math.NaN()},
		"BurstSeconds is -1, must be above 0 and at most 86400":              {BurstSeconds: -1},
		"BurstSeconds is 100000, must":                                       {Rate: 1, BurstSeconds: 1e5},
		"BurstSeconds is 0.1, must be at least 1/Rate (0.2)":                 {Rate: 5, BurstSeconds: 0.1},
		"QueueDepth is -1, must be 0 or more":                                {QueueDepth: -1},
		"QueueDepth is 86401, must be at most 86400, a day's wait":           {Rate: 1, QueueDepth: 86401},
		"Exempt.Applications[1] is \"\", must be a prefix":                   {Exempt: Exempt{Applications: []string{"a", ""}}},
		"Exempt.Applications[0] is \"\", must be a prefix":                   {Exempt: Exempt{Applications: []string{""}}},
		"Exempt.Identities[0] is \"\", must be the name of a caller":         {Exempt: Exempt{Identities: []string{""}}},
		"Exempt.CIDRs[0] is invalid Prefix, must be a network":               {Exempt: Exempt{CIDRs: prefixes(t, "")}},
		"Exempt.CIDRs[0] is ::ffff:10.0.0.0/104, must be written as an IPv4": {Exempt: Exempt{CIDRs: prefixes(t, "::ffff:10.0.0.0/104")}},
	} {
		l, err := New(c)
		if l != nil || err == nil || !strings.HasPrefix(err.Error(), "ratelimit: "+want) {
			t.Errorf("New(%+v) = %v, %v; want an error with %q", c, l, err, want)
		}
	}
}

func TestHotPathDoesNotAllocate(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	now := t0
	l := must(t, Config{Rate: 1000, BurstSeconds: 0.001, QueueDepth: 1})
	for name, f := range map[string]func(){
		"admit":   func() { now = now.Add(ms); _, _ = l.Admit(now, spillway.Call{}) },
		"reject":  func() { _, _ = l.Admit(now, spillway.Call{}) },
		"reserve": func() { r, _ := l.Reserve(now); r.End(now) },
		"exempt":  func() { l.Exempt(Caller{Application: "mongosh"}) },
	} {
		if n := testing.AllocsPerRun(200, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
	if s := l.Stats(now); s.AdmittedTotal < 200 || s.RejectedTotal < 200 || s.AbandonedTotal < 200 {
		t.Errorf("not all paths were taken: %+v", s)
	}
}

// An admission while the rate changes takes its token at one rate or the other, and none
// twice: the bucket never holds more than its share, nor owes a token of the old rate.
func TestAdmitDuringUpdate(t *testing.T) {
	const workers, calls = 4, 5000
	day, fast := Config{Rate: 1. / 86400}, Config{Rate: 1e6}
	l := must(t, fast)
	var admitted atomic.Int64
	var callers, updates sync.WaitGroup
	done := make(chan struct{})
	updates.Go(func() {
		for {
			for _, c := range []Config{day, fast} {
				if err := l.Update(c); err != nil {
					t.Error(err)
				}
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	for range workers {
		callers.Go(func() {
			for i := range calls {
				if _, err := l.Admit(t0.Add(time.Duration(i)*time.Microsecond), spillway.Call{}); err == nil {
					admitted.Add(1)
				}
			}
		})
	}
	callers.Wait()
	close(done)
	updates.Wait()
	s := l.Stats(t0.Add(calls * time.Microsecond))
	if s.AdmittedTotal != uint64(admitted.Load()) || s.AdmittedTotal+s.RejectedTotal != workers*calls {
		t.Errorf("%d admitted: %+v", admitted.Load(), s)
	}
	if s.Tokens < 0 || s.Tokens > s.Capacity {
		t.Errorf("%v tokens of %v", s.Tokens, s.Capacity)
	}
	if _, err := l.Admit(t0.Add(2*time.Second), spillway.Call{}); err != nil {
		t.Errorf("at a million per second, after two seconds: %v", err)
	}
}

// Many goroutines at once, while parameters change: no more is admitted than the
// most generous bucket allows, and the queue ends empty.
func TestConcurrentUse(t *testing.T) {
	const workers, calls, rate = 8, 2000, 1000
	l := must(t, Config{Rate: rate, QueueDepth: 50})
	var admitted atomic.Int64
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := range calls {
				now := t0.Add(time.Duration(i) * ms)
				if i%500 == w {
					if err := l.Update(Config{Rate: float64(rate - w*100), QueueDepth: 50}); err != nil {
						t.Error(err)
					}
				}
				if r, err := l.Reserve(now); err == nil && r.End(now.Add(time.Duration(i%100)*ms)) {
					admitted.Add(1)
				}
			}
		})
	}
	all.Wait()
	s := l.Stats(t0.Add(time.Hour))
	// calls+100 ms pass; each that gives up frees a token that was never there for long.
	if n, most := admitted.Load(), int64(rate+rate*(calls+100)/1000+50); n > most || n == 0 {
		t.Errorf("%d admitted, want 1 to %d", n, most)
	}
	if s.Waiting != 0 || s.AdmittedTotal != uint64(admitted.Load()) || s.AdmittedTotal+s.RejectedTotal+s.AbandonedTotal != workers*calls {
		t.Errorf("afterwards %+v", s)
	}
}
