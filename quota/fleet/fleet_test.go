package fleet

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/quota"
)

func must(t testing.TB, c Config) *Fleet {
	t.Helper()
	f, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestConfigOutOfRangeNamesTheField(t *testing.T) {
	customers := func(name string, l quota.Limit) quota.LocalConfig {
		return quota.LocalConfig{Customers: map[string]quota.Limit{name: l}}
	}
	for field, c := range map[string]Config{
		"Tasks":            {Tasks: -1},
		"Interval":         {Interval: time.Millisecond},
		"BurstSeconds":     {BurstSeconds: math.NaN()},
		"LeastDepth":       {LeastDepth: 1e7},
		"Hold":             {Hold: time.Millisecond},
		"Grace":            {Grace: time.Second},
		"MaxUnlisted":      {MaxUnlisted: 1e6},
		"at most 20000":    {MaxUnlisted: 20001, Limits: quota.LocalConfig{Capacity: 1}},
		"with Capacity or": {MaxUnlisted: 20001, Limits: quota.LocalConfig{UnlistedTotal: quota.Limit{Rate: 1}}},
		"Task":             {Task: strings.Repeat("x", 300)},
		"Limits.Customers": {Limits: customers("", quota.Limit{})},
		"1 to 255 bytes":   {Limits: customers(strings.Repeat("x", 300), quota.Limit{})},
		"Capacity":         {Limits: quota.LocalConfig{Capacity: -1}},
	} {
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%+v: %v, want an error that names %s", c, err, field)
		}
	}
}

// A task without a word grants its part of the limit, and of the capacity.
func TestWithoutAWord(t *testing.T) {
	c := mail(1000)
	c.Limits.DefaultLimit.Rate = 40
	f := must(t, c)
	for name, want := range map[string]float64{"mail": 50, "somebody": 2, "": 2} {
		if g := f.Lease(t0, quota.Demand{Customer: name}); math.Abs(g.Rate-want) > 1e-9 || g.LeastClass != 0 || g.LeastDepth != 3 {
			t.Errorf("%q: %+v, want %v", name, g, want)
		}
	}
	if g := must(t, Config{}).Lease(t0, quota.Demand{Customer: "mail"}); !math.IsInf(g.Rate, 1) {
		t.Errorf("without a limit: %+v", g)
	}
}

// pair returns two tasks and their board, at a time that the caller sets.
func pair(t *testing.T, c Config) (a, b *Fleet, sync func(at time.Duration)) {
	t.Helper()
	now := t0
	board := NewMemory(func() time.Time { return now })
	c.Task = "a"
	a = must(t, c)
	c.Task = "b"
	b = must(t, c)
	return a, b, func(at time.Duration) {
		now = t0.Add(at)
		for _, f := range []*Fleet{a, b} {
			if err := f.Sync(context.Background(), now, board); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// ask is a Lease of a customer that offers a cost in 200 ms.
func ask(f *Fleet, at time.Duration, customer string, cost float64) quota.Grant {
	return f.Lease(t0.Add(at), quota.Demand{
		Customer: customer, Elapsed: 200 * ms, Wants: cost * 5, Offered: [4]float64{2: cost}, Used: cost,
	})
}

func TestQuietCustomersAreNotReported(t *testing.T) {
	a, _, sync := pair(t, mail(1000))
	ask(a, 0, "mail", 10)
	sync(0)
	if s := a.Stats(t0); s.Customers != 1 {
		t.Fatalf("%+v, want 1 customer", s)
	}
	for at := 200 * ms; at < 6*time.Second; at += 200 * ms {
		sync(at)
	}
	s := a.Stats(t0.Add(6 * time.Second))
	if s.Customers != 0 || s.ReportBytes > 30 {
		t.Errorf("after 6 s without a call: %+v", s)
	}
	if l := a.levels(); len(l.customers) != 0 {
		t.Errorf("the leader still knows %v", l.customers)
	}
}

// More names than MaxUnlisted are one customer; listed ones keep their names.
func TestMaxUnlisted(t *testing.T) {
	c := mail(1000)
	c.MaxUnlisted, c.Limits.DefaultLimit.Rate = 10, 5
	a, _, sync := pair(t, c)
	for i := range 1000 {
		if g := ask(a, 0, fmt.Sprint(i), 1); g.Unlisted != (i >= 10) {
			t.Fatalf("customer %d: %+v", i, g)
		}
	}
	if !ask(a, 0, strings.Repeat("x", 300), 1).Unlisted {
		t.Error("a name that is too long for a report has a rate of its own")
	}
	if ask(a, 0, "", 1).Unlisted {
		t.Error("the customer of all others has no rate")
	}
	ask(a, 0, "mail", 1)
	sync(0)
	if s := a.Stats(t0); s.Customers != 12 {
		t.Errorf("%d customers are reported, want 10, all others, and the listed one", s.Customers)
	}
	for at := 200 * ms; at < 6*time.Second; at += 200 * ms {
		sync(at)
	}
	ask(a, 6*time.Second, "new", 1)
	if a.entries["new"] == nil {
		t.Error("places of idle customers are not given to others")
	}
}

// A client that invents names gets one customer's rate on top of the places, even where the
// quota has a place for each name.
func TestInventedNamesShareOneRate(t *testing.T) {
	const seconds, places, rate = 10, 10, 5
	f := must(t, Config{Tasks: 1, MaxUnlisted: places, Limits: quota.LocalConfig{DefaultLimit: quota.Limit{Rate: rate}}})
	gate, err := quota.New(quota.Config{Allocator: f, MaxUnlisted: 10000})
	if err != nil {
		t.Fatal(err)
	}
	admitted := 0
	for at := time.Duration(0); at < seconds*time.Second; at += ms {
		for _, name := range []string{fmt.Sprint("kept-", at/ms%200), fmt.Sprint("new-", at)} {
			ticket, err := gate.Admit(t0.Add(at), spillway.Call{Customer: name})
			if err != nil {
				continue
			}
			admitted++
			if at%(10*ms) == 0 { // as if it had not run
				ticket.Settle(t0.Add(at), spillway.OutcomeNotStarted)
				admitted--
			}
		}
	}
	// Twice, because places of customers that are idle for 5 s are given to others.
	if most := (places*2 + 1) * rate * (seconds + 1); admitted > most || admitted < rate*seconds {
		t.Errorf("%d calls of invented names are admitted in %d s, want at most %d and at least %d", admitted, seconds, most, rate*seconds)
	}
	shared := 0
	for _, c := range gate.Stats(t0.Add(seconds * time.Second)) {
		if c.Customer == "" && c.Rate == rate {
			shared++
		}
	}
	if shared != 1 {
		t.Errorf("%d lines for the shared bucket, want 1", shared)
	}
}

// An update leaves all places for names as they are: calls without a customer take none.
func TestUpdateKeepsPlaces(t *testing.T) {
	c := Config{MaxUnlisted: 1, Limits: quota.LocalConfig{DefaultLimit: quota.Limit{Rate: 5}}}
	f := must(t, c)
	ask(f, 0, "", 1)
	if err := f.Update(c); err != nil {
		t.Fatal(err)
	}
	if ask(f, 0, "a", 1).Unlisted {
		t.Error("after an update there is no place for a name")
	}
	if !ask(f, 0, "b", 1).Unlisted {
		t.Error("there is a place for a second name")
	}
}

func TestUrgentDemand(t *testing.T) {
	a, _, sync := pair(t, mail(1000))
	for at := time.Duration(0); at < 3*time.Second; at += 200 * ms {
		ask(a, at, "mail", 10)
		sync(at)
	}
	urgent := func() bool {
		select {
		case <-a.urgent:
			return true
		default:
			return false
		}
	}
	urgent()
	if ask(a, 3*time.Second, "mail", 11); urgent() {
		t.Error("a tenth more is urgent")
	}
	if ask(a, 3*time.Second, "mail", 500); !urgent() {
		t.Error("fifty times as much is not urgent")
	}
}

// Tasks that have other limits than the leader are reported, by them and by the leader.
func TestConfigConflict(t *testing.T) {
	a, b, sync := pair(t, mail(1000))
	for at := time.Duration(0); at < time.Second; at += 200 * ms {
		sync(at)
	}
	if a.Stats(t0).ConfigConflict || b.Stats(t0).ConfigConflict {
		t.Fatal("the same limits conflict")
	}
	if err := b.Update(mail(2000)); err != nil {
		t.Fatal(err)
	}
	if err := b.Update(Config{Tasks: -1}); err == nil {
		t.Fatal("Tasks -1 was accepted")
	}
	for at := time.Second; at < 2*time.Second; at += 200 * ms {
		sync(at)
	}
	if !a.Stats(t0).ConfigConflict || !b.Stats(t0).ConfigConflict {
		t.Error("other limits do not conflict")
	}
}

func TestUpdate(t *testing.T) {
	a, b, sync := pair(t, mail(1000))
	for at := time.Duration(0); at < 8*time.Second; at += 200 * ms {
		if at == 6*time.Second { // so late that a leader that counts its levels from 1 again is noticed
			for _, f := range []*Fleet{a, b} {
				if err := f.Update(mail(100)); err != nil {
					t.Fatal(err)
				}
			}
		}
		ask(a, at, "mail", 200)
		sync(at)
	}
	if l, ok := a.Level("mail"); !ok || l.Rate != 100 {
		t.Errorf("the level is %+v, want a rate of 100", l)
	}
	if s := a.Stats(t0.Add(8 * time.Second)); s.Age > 400*ms {
		t.Errorf("the last word is %v old", s.Age)
	}
	grace := a.cfg.Grace
	if s := a.Stats(t0.Add(8*time.Second + grace/2)); s.Grace > grace/2+400*ms || s.Grace < grace/2-400*ms {
		t.Errorf("half of the grace of %v without a word leaves %v", grace, s.Grace)
	}
	if s := a.Stats(t0.Add(9*time.Second + grace)); s.Grace != 0 {
		t.Errorf("a grace of %v is left after all of it", s.Grace)
	}
	if g := ask(a, 8*time.Second, "mail", 200); g.Rate > 100 {
		t.Errorf("granted %v of 100", g.Rate)
	}
}

// A customer belongs to the same shard in all tasks, and shards share the customers.
func TestShards(t *testing.T) {
	c := Config{Tasks: 1, Limits: quota.LocalConfig{DefaultLimit: quota.Limit{Rate: 10}}}
	s := Shards{must(t, c), must(t, c), must(t, c)}
	for i := range 300 {
		if g := s.Lease(t0, quota.Demand{Customer: fmt.Sprint(i)}); g.Rate != 10 {
			t.Fatalf("granted %+v", g)
		}
	}
	for i, f := range s {
		if n := len(f.entries); n < 70 || n > 130 {
			t.Errorf("shard %d has %d of 300 customers", i, n)
		}
	}
	if s.of("mail") != s[1] || s.Known("mail") {
		t.Error("the hash of names has changed: tasks of two versions would disagree")
	}
}

// Run syncs at once, then once per interval, early if demand is urgent, and says goodbye.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mail(1000)
		c.Task = "a"
		f := must(t, c)
		board := &counting{Memory: NewMemory(time.Now)}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { defer close(done); Run(ctx, f, board) }()
		time.Sleep(10100 * ms)
		if n := board.syncs.Load(); n < 50 || n > 53 {
			t.Errorf("%d round trips in 10.1 s, want one per 200 ms", n)
		}
		before := board.syncs.Load()
		for range 4 {
			ask(f, time.Since(t0), "mail", 5000)
			time.Sleep(10 * ms)
		}
		time.Sleep(50 * ms)
		if board.syncs.Load() == before {
			t.Error("no round trip within 90 ms of urgent demand")
		}
		cancel()
		<-done
		if len(board.reports) != 0 {
			t.Error("Run ended without a goodbye")
		}
	})
}

// A board that hangs is given up after two intervals, and asked again.
func TestRunWithABoardThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		f := must(t, mail(1000))
		Run(ctx, f, hanging{})
		if s := f.Stats(time.Now()); s.ErrorsTotal < 20 || s.ErrorsTotal != s.SyncsTotal {
			t.Errorf("%+v, want an error for each 400 ms", s)
		}
	})
}

type counting struct {
	*Memory
	syncs atomic.Int64
}

func (c *counting) Sync(ctx context.Context, s Said) (Heard, error) {
	c.syncs.Add(1)
	return c.Memory.Sync(ctx, s)
}

type hanging struct{}

func (hanging) Sync(ctx context.Context, _ Said) (Heard, error) {
	<-ctx.Done()
	return Heard{}, ctx.Err()
}
func (hanging) Publish(context.Context, Publication) error { return errors.New("not reached") }
func (hanging) Leave(ctx context.Context, _ string) error  { <-ctx.Done(); return ctx.Err() }
