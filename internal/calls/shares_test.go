package calls_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/internal/calls"
	"github.com/seed90641741/spillway/throttle"
)

var t0 = time.Unix(1_700_000_000, 0)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// An asker asks for retries of one route, or of a new route each time if it has no name.
type asker struct {
	name      string
	perSecond float64
	served    bool // now and then

	asked, got int
}

// divide runs askers against a bucket that gets 5 tokens per second, for a time.
func divide(t *testing.T, s *calls.Shares, b *budget.Bucket, begin, end time.Time, all ...*asker) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	const step = 5 * time.Millisecond
	n := 0
	for now := begin; now.Before(end); now = now.Add(step) {
		b.Deposit("", 5*step.Seconds())
		for _, i := range r.Perm(len(all)) {
			a := all[i]
			if r.Float64() >= a.perSecond*step.Seconds() {
				continue
			}
			n++
			if a.served {
				s.Served(now, a.name)
			}
			name := a.name
			if name == "" {
				name = fmt.Sprint("stranger ", n)
			}
			a.asked++
			leave := s.Ask(now, name)
			if left, capacity := b.Level(); left-1 < min(leave, capacity/2) {
				continue
			}
			if _, _, ok := b.Withdraw(now, name, 1); ok {
				a.got++
				s.Took(now, name)
			}
		}
	}
}

// TestShares: routes that need few retries get all of them although there is a page that needs sixteen times what there is, also if that
// was alone for ten minutes, and pages that need more than there is get the same.
func TestShares(t *testing.T) {
	s, b := new(calls.Shares), must(budget.New(budget.Config{Capacity: 100, Empty: true}))
	page := &asker{name: "page", perSecond: 80}
	t1, t2 := t0.Add(10*time.Minute), t0.Add(20*time.Minute)
	divide(t, s, b, t0, t1, page)
	if page.got < 2950 { // all that there is
		t.Errorf("alone: got %d of 3000", page.got)
	}
	*page = asker{name: "page", perSecond: 80}
	other := &asker{name: "another page", perSecond: 40, served: true}
	honest := []*asker{{name: "a", perSecond: .2, served: true}, {name: "b", perSecond: .2, served: true}, {name: "c", perSecond: .1, served: true}, {name: "d", perSecond: .05, served: true}}
	divide(t, s, b, t1, t2, append(honest, page, other)...)
	for _, a := range honest {
		if a.asked-a.got > 3 {
			t.Errorf("%s got %d of %d", a.name, a.got, a.asked)
		}
	}
	if sum := page.got + other.got; sum < 2400 || page.got > 2*other.got || other.got > 2*page.got {
		t.Errorf("the pages got %d and %d", page.got, other.got)
	}
}

// TestSharesOfStrangers: names without end, none of which is ever served, have one share together.
func TestSharesOfStrangers(t *testing.T) {
	s, b := new(calls.Shares), must(budget.New(budget.Config{Capacity: 100, Empty: true}))
	honest, strangers := &asker{name: "honest", perSecond: .5, served: true}, &asker{perSecond: 80}
	divide(t, s, b, t0, t0.Add(10*time.Minute), honest, strangers)
	if honest.asked-honest.got > 3 || strangers.got < 2400 {
		t.Errorf("honest got %d of %d, strangers %d", honest.got, honest.asked, strangers.got)
	}
	if n := testing.AllocsPerRun(100, func() { s.Ask(t0, "honest"); s.Took(t0, "honest"); s.Served(t0, "honest") }); n > 0 {
		t.Errorf("%v allocations", n)
	}
	for i := range 10 * calls.MaxShares {
		s.Served(t0.Add(10*time.Minute), fmt.Sprint(i)) // the places go to those that were served last
	}
	s.Took(t0.Add(10*time.Minute), "0")
	if got := s.Ask(t0.Add(10*time.Minute), "0"); got < 1 {
		t.Errorf("a name without a place leaves %v for those that have one", got)
	}
}

// TestSharesForget: who asks alone leaves nothing, and what was asked for is forgotten.
func TestSharesForget(t *testing.T) {
	var s calls.Shares
	s.Took(t0, "a")
	s.Served(t0, "b")
	for _, row := range []struct {
		after   time.Duration
		account string
		want    float64
	}{{0, "a", 0}, {0, "b", 0}, {0, "a", 1}, {-time.Hour, "a", 1}, {time.Second, "b", 0}, {time.Second, "a", 1.98}, {10 * time.Minute, "a", 0}} {
		if got := s.Ask(t0.Add(row.after), row.account); got < row.want-0.01 || got > row.want+0.01 {
			t.Errorf("after %v, %s leaves %v, want %v", row.after, row.account, got, row.want)
		}
	}
	var none *calls.Shares
	none.Took(t0, "a")
	if none.Ask(t0, "b") != 0 {
		t.Error("a nil Shares leaves something")
	}
}

// TestShareBringsItsRetry: a route whose first call needed a retry leaves nothing for it afterwards.
func TestShareBringsItsRetry(t *testing.T) {
	var s calls.Shares
	for range 3 {
		if leave := s.Ask(t0, "a"); leave != 0 {
			t.Errorf("leaves %v", leave)
		}
		s.Took(t0, "a")
		s.Served(t0, "a")
	}
}

// All routes without their own account are one account: also after successes nobody but they ask, so
// they leave nothing to others.
func TestOtherRoutesKeepTheCommonShare(t *testing.T) {
	var s calls.Shares
	now := t0
	for i := range 30 {
		if leave := s.Ask(now, throttle.OtherRoutes); leave != 0 {
			t.Fatalf("after %v: %v tokens to leave, and nobody else asks", now.Sub(t0), leave)
		}
		s.Took(now, throttle.OtherRoutes)
		if i >= 10 {
			s.Served(now.Add(time.Millisecond), throttle.OtherRoutes)
		}
		now = now.Add(100 * time.Millisecond)
	}
}
