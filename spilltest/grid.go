package spilltest

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A Rig is an adapter between its client and its server, with callbacks of a user that burn a [Fuse].
type Rig interface {
	// Held returns how many calls are in flight, or hold something else, such as a connection.
	Held() int
	// Close closes the client, the server and their connections.
	Close() error
}

// TestPanics tests what happens if code of the user panics: each callback that open gives to the adapter, at each of its calls, at
// each point. Each time the caller must be able to recover, nothing must be held afterwards, the next call must be served, and Close
// must return. open is called in a bubble of testing/synctest, and returns a new Rig each time. The callbacks are found by a run of
// each point in which none panics.
//
// Each pair of a point and a callback is a subtest. A callback that has none is not called at that point.
func TestPanics[R Rig](t *testing.T, open func(t *testing.T, f *Fuse) R, points Points[R]) {
	all := reflect.ValueOf(points)
	for i := range all.NumField() {
		name := all.Type().Field(i).Name
		point, ok := reflect.TypeAssert[Point[R]](all.Field(i))
		if !ok {
			continue
		}
		t.Run(name, func(t *testing.T) {
			if (point.Do == nil) == (point.Not == "") {
				t.Fatalf("the point has a call: %v, and says %q: must have a call, or say why there is none", point.Do != nil, point.Not)
			}
			if point.Not != "" {
				t.Skip(point.Not)
			}
			g := grid[R]{name: name, open: open, point: point, next: points.Served, late: points.Late, unseen: points.Unseen}
			g.test(t)
		})
	}
}

// A grid tests the panics at one point.
type grid[R Rig] struct {
	name         string
	open         func(*testing.T, *Fuse) R
	point, next  Point[R]
	late, unseen map[string]string
}

func (g *grid[R]) test(t *testing.T) {
	calls := g.trial(t, "", 0)
	if len(calls) == 0 {
		t.Error("no callback is called")
	}
	for _, callback := range slices.Sorted(maps.Keys(calls)) {
		t.Run(callback, func(t *testing.T) {
			for n := range calls[callback] {
				g.trial(t, callback, n+1)
			}
		})
	}
}

// trial makes the call of the point, in which the n-th call of the callback panics; if n is zero, none. It returns how often each
// callback was called.
func (g *grid[R]) trial(t *testing.T, callback string, n int) (calls map[string]int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &Fuse{Point: g.name, callback: callback}
		r := g.open(t, f)
		f.light(n)
		err := f.do(t, func(ctx context.Context) error { return g.point.Do(ctx, f, r) })
		g.released(t, f, r)
		calls = f.light(0)
		next := func(ctx context.Context) error { return g.next.Do(ctx, f, r) }
		if f.burntIn(g.late) && !f.isCaught() {
			_ = f.do(t, next) // its caller recovers
		}
		g.judge(t, f, n, err)
		if err := f.do(t, next); err != nil {
			t.Errorf("%s: the next call: %v", f, err)
		}
		g.released(t, f, r)
		closes(t, f, r)
	})
	return calls
}

// judge says whether the call has ended as it should.
func (g *grid[R]) judge(t *testing.T, f *Fuse, n int, err error) {
	t.Helper()
	burnt := f.isBurnt()
	switch {
	case n == 0 && err != nil:
		t.Errorf("without a panic: %v", err)
	case n == 1 && !burnt:
		t.Errorf("%s: it was not called", f)
	case burnt && !f.isCaught() && !f.burntIn(g.unseen):
		t.Errorf("%s: no caller could recover; the call returned %v\n%s", f, err, f.stack)
	}
}

// released waits until nothing is held. In a bubble that takes no time.
func (g *grid[R]) released(t *testing.T, f *Fuse, r R) {
	t.Helper()
	for range 600 {
		synctest.Wait()
		if f.held(r) == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("%s: %d calls hold something a minute later", f, f.held(r))
}

// held looks at what is held. What it calls does not count: statistics read signals.
func (f *Fuse) held(r Rig) int {
	defer f.pause()()
	return r.Held()
}

// closes checks that Close returns. If it does not, the goroutine that waits for it makes the bubble fail, too.
func closes(t *testing.T, f *Fuse, r Rig) {
	t.Helper()
	closed := make(chan error, 1)
	go func() { closed <- r.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Errorf("%s: Close: %v", f, err)
		}
	case <-time.After(5 * time.Minute):
		t.Errorf("%s: Close does not return", f)
	}
	time.Sleep(time.Minute) // what ends a little later
}

var errLong = errors.New("spilltest: the call lasts for a minute")

// do makes calls that must end within a minute. They have no deadline: a gate may wait as long as that allows.
func (f *Fuse) do(t *testing.T, call func(context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	defer time.AfterFunc(time.Minute, func() { cancel(errLong) }).Stop()
	err := f.Try(func() error { return call(ctx) })
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}
