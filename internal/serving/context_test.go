package serving

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/claims"
)

type userKey struct{}

var errCause = errors.New("on purpose")

// pair is an Context, and the one of the standard library that it must
// not differ from.
type pair struct {
	got, want context.Context
	end       func()
}

func newPair(parent context.Context, class spillway.Criticality, labelled bool, deadline time.Time) (p pair) {
	c := &Context{Context: parent, deadline: deadline, class: class, labelled: labelled}
	p.got, p.want = c, parent
	if labelled {
		p.want = spillway.WithCriticality(p.want, class)
	}
	stop := func() {}
	if !deadline.IsZero() {
		p.want, stop = context.WithDeadline(p.want, deadline)
	}
	p.end = func() { c.End(time.Now()); stop() }
	return p
}

// derive puts the same on top of both.
func (p pair) derive(of func(context.Context) context.Context) pair {
	return pair{of(p.got), of(p.want), func() {}}
}

// look returns the results of all methods of a context.
func look(c context.Context, op int) string {
	d, limited := c.Deadline()
	switch op {
	case 0:
		return fmt.Sprint("error ", c.Err())
	case 1:
		return fmt.Sprint("cause ", context.Cause(c))
	case 2:
		select {
		case <-c.Done():
			return fmt.Sprint("done ", c.Err(), context.Cause(c))
		default:
			return fmt.Sprint("under way, may end: ", c.Done() != nil)
		}
	case 3:
		return fmt.Sprint("deadline ", d, limited)
	default:
		class, ok := spillway.LookupCriticality(c)
		return fmt.Sprint("values ", c.Value(userKey{}), class, ok)
	}
}

// TestContextContext: however and whenever it is asked, a context with a class
// and a deadline is like one of the standard library, and so are those derived.
func TestContextContext(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			parent, cancel := context.WithCancelCause(context.WithValue(t.Context(), userKey{}, "user"))
			defer cancel(nil)
			if r.IntN(3) == 0 {
				var stop context.CancelFunc
				parent, stop = context.WithTimeout(parent, time.Duration(r.IntN(10))*time.Second)
				defer stop()
			}
			var deadline time.Time
			if r.IntN(4) > 0 {
				deadline = time.Now().Add(time.Duration(r.IntN(10)-1)*time.Second + time.Microsecond) // never just when something else happens
			}
			root := newPair(parent, spillway.Criticality(r.IntN(4)-2), r.IntN(2) == 0, deadline)
			pairs := []pair{root}
			for step := range 20 {
				switch r.IntN(8) {
				case 0:
					time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
				case 1:
					pairs = append(pairs, pairs[r.IntN(len(pairs))].derive(func(c context.Context) context.Context {
						c, stop := context.WithCancel(c)
						t.Cleanup(stop)
						return c
					}))
				case 2:
					pairs = append(pairs, pairs[r.IntN(len(pairs))].derive(context.WithoutCancel))
				case 3:
					if r.IntN(4) == 0 {
						_ = root.got.Err() // whether the deadline came first is known to who asks in between
						cancel(errCause)
					}
				case 4:
					if r.IntN(4) == 0 {
						synctest.Wait()
						root.end()
					}
				default:
					synctest.Wait()
					p, op := pairs[r.IntN(len(pairs))], r.IntN(5)
					if got, want := look(p.got, op), look(p.want, op); got != want {
						t.Errorf("seed %d, step %d: %s, want %s", seed, step, got, want)
					}
				}
			}
			root.end()
		})
	}
}

// TestContextEnds: what ended a request is what had before it was answered.
func TestContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, row := range []struct {
			name          string
			asked, leaves bool
			after         time.Duration
			want          error
		}{
			{"in time", false, false, 0, nil},
			{"in time, asked", true, false, 0, nil},
			{"late", false, false, time.Minute, context.DeadlineExceeded},
			{"late, asked", true, false, time.Minute, context.DeadlineExceeded},
			{"left", false, true, 0, context.Canceled},
			{"left, asked", true, true, 0, context.Canceled},
			{"left, then late", false, true, time.Minute, context.Canceled},
		} {
			parent, cancel := context.WithCancel(t.Context())
			c := &Context{Context: parent, deadline: time.Now().Add(time.Minute)}
			if row.asked {
				c.Done()
			}
			if row.leaves {
				cancel()
			}
			time.Sleep(row.after)
			synctest.Wait()
			if err := c.End(time.Now()); err != row.want {
				t.Errorf("%s: %v, want %v", row.name, err, row.want)
			}
			if <-c.Done(); c.Err() == nil {
				t.Errorf("%s: has not ended", row.name)
			}
			cancel()
		}
	})
}

// TestDerivedContextsAreFree: one derived from an Context has no
// goroutine to watch it.
func TestDerivedContextsAreFree(t *testing.T) {
	parent, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := &Context{Context: parent, deadline: time.Now().Add(time.Hour)}
	before := runtime.NumGoroutine()
	var ends []context.CancelFunc
	for range 100 {
		_, end := context.WithCancel(c)
		ends = append(ends, end)
	}
	if n := runtime.NumGoroutine(); n > before+50 {
		t.Errorf("%d goroutines, %d before", n, before)
	}
	for _, end := range ends {
		end()
	}
	c.End(time.Now())
}

// The context of a request has ended when its deadline has come, also where nobody has waited for
// that.
func TestContextAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Context{Context: t.Context(), deadline: time.Now().Add(time.Second)}
		time.Sleep(time.Second - 1)
		if err := c.Err(); err != nil {
			t.Errorf("before the deadline: %v", err)
		}
		time.Sleep(time.Nanosecond) // in the virtual time of the bubble
		if err := c.Err(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("at the deadline: %v", err)
		}
		c.End(time.Now())
	})
}

// Under a context that has the deadline of the client, a Context has the earlier of the two deadlines, and marks that of the client if it is
// not trusted and the earlier one.
func TestContextUnder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		for _, row := range []struct {
			client, own time.Duration // 0: none
			edge        bool
			want        time.Duration
			marked      bool
		}{
			{0, 0, true, 0, false}, {2, 0, true, 2, true}, {2, 0, false, 2, false}, {0, 1, true, 1, false},
			{2, 1, true, 1, false}, {2, 3, true, 2, true}, {2, 2, true, 2, true}, {2, 3, false, 2, false},
		} {
			parent, stop := t.Context(), func() {}
			if row.client > 0 {
				parent, stop = context.WithDeadline(parent, now.Add(row.client*time.Second))
			}
			a := &Arrival{Edge: row.edge}
			if row.own > 0 {
				a.Call.Deadline = now.Add(row.own * time.Second)
			}
			c := new(Context)
			c.BeginUnder(parent, a, 0)
			d, ok := c.Deadline()
			if ok != (row.want > 0) || ok && !d.Equal(now.Add(row.want*time.Second)) || claims.Untrusted(c) != row.marked {
				t.Errorf("%+v: deadline %v, %v, marked %v", row, d.Sub(now), ok, claims.Untrusted(c))
			}
			if c.Stop(); row.own > 0 && row.want == row.own && row.own != row.client && !errors.Is(c.Err(), context.Canceled) {
				t.Errorf("%+v: after the end, error %v", row, c.Err())
			}
			stop()
		}
	})
}

// What an untrusted client claims is believed where it costs others nothing.
func TestBelieve(t *testing.T) {
	now := time.Now()
	for _, row := range []struct {
		boundary  ingress.Boundary
		said      string
		known     spillway.Criticality
		class     spillway.Criticality
		labelled  bool
		restated  string
		believes  bool // the level
		untrusted bool // the deadline
	}{
		{ingress.Edge, "SHEDDABLE", 0, spillway.Sheddable, true, "SHEDDABLE", false, true},
		{ingress.Edge, "CRITICAL_PLUS", 0, spillway.Critical, false, "", false, true},
		{ingress.Internal, "CRITICAL_PLUS", 0, spillway.CriticalPlus, true, "CRITICAL_PLUS", true, false},
		{ingress.Internal, "CRITICAL", 0, spillway.Critical, true, "CRITICAL", true, false},
		{ingress.Edge, "CRITICAL", spillway.SheddablePlus, spillway.SheddablePlus, true, "SHEDDABLE_PLUS", false, true},
	} {
		a := &Arrival{Call: spillway.Call{Criticality: row.known}, Said: claims.Fields{Criticality: []string{row.said}, Level: []string{"7"}}}
		said := ingress.Claims{Timeout: time.Second}
		a.Read(&said, nil)
		a.Believe(now, &ingress.Trust{Boundary: row.boundary, DefaultMax: spillway.CriticalPlus, MaxTimeout: time.Hour}, &said)
		c := new(Context)
		c.Begin(t.Context(), a, 0)
		if got, ok := spillway.LookupCriticality(c); a.Call.Criticality != row.class || ok != row.labelled || ok && got != row.class {
			t.Errorf("%+v: class %v, for calls %v, %v", row, a.Call.Criticality, got, ok)
		}
		if (a.Call.Level == 7) != row.believes || claims.Untrusted(c) != row.untrusted {
			t.Errorf("%+v: level %v, untrusted deadline %v", row, a.Call.Level, claims.Untrusted(c))
		}
		f, _ := a.Restate()
		if got := strings.Join(f.Criticality, "|"); got != row.restated || (len(f.Level) > 0) != row.believes {
			t.Errorf("%+v: served with class %q, level %q", row, got, f.Level)
		}
		_ = c.End(time.Now())
	}
}
