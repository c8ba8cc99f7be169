package spilltest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/seed90641741/spillway"
)

// Points are the calls in which callbacks of the user may panic. A call has one, or says why there is none.
type Points[R Rig] struct {
	// Served is a call that is served. It must be so after each panic, too.
	Served Point[R]
	// Failed is a call that fails.
	Failed Point[R]
	// Rejected is a call that a gate of the adapter rejects.
	Rejected Point[R]
	// Waiting is a call that waits for another one, and is served.
	Waiting Point[R]
	// Left is a call whose caller leaves before it is answered.
	Left Point[R]
	// Retry is a call whose first attempt fails, and whose second is served.
	Retry Point[R]
	// Hedge is a call that is sent a second time because the first attempt is slow.
	Hedge Point[R]
	// Stream is a call that sends and receives several messages, or parts of a body, and closes.
	Stream Point[R]

	// Late says of functions, by a part of their names, why a panic below them reaches the caller of the next call: they run in goroutines
	// of the adapter, for no call. The next call then need not be served; the one after it must be.
	Late map[string]string
	// Unseen says of functions, by a part of their names, why no caller can recover from a panic below them. Each other panic must
	// reach a caller.
	Unseen map[string]string
}

// A Point is one kind of call.
type Point[R Rig] struct {
	// Do makes the call, and the others that it needs. It returns an error if not all goes as the point says. The code that called
	// the host, in whatever goroutine, recovers with [Fuse.Try] or [Fuse.Caught].
	Do func(ctx context.Context, f *Fuse, r R) error
	// Not says why there is no such call. It excludes Do.
	Not string
}

// Calls returns the points that one func can make. call is a call of the client of the host, with [Fuse.Work] as the backend or the
// handler. The limit on calls in flight must be one, for a client at the point Rejected. rejected reports by its error whether a
// call was rejected; nil means that the error matches [spillway.ErrRejected]. The caller sets Stream, and the points that the adapter
// does not have.
func Calls[R Rig](call func(ctx context.Context, r R) error, rejected func(error) bool) Points[R] {
	if rejected == nil {
		rejected = func(err error) bool { return errors.Is(err, spillway.ErrRejected) }
	}
	again := func(ctx context.Context, f *Fuse, r R) error {
		return errors.Join(call(ctx, r), f.ran(2))
	}
	return Points[R]{
		Served: Point[R]{Do: func(ctx context.Context, _ *Fuse, r R) error { return call(ctx, r) }},
		Failed: Point[R]{Do: func(ctx context.Context, f *Fuse, r R) error {
			return f.expect("fails", call(ctx, r), func(err error) bool { return err != nil })
		}},
		Rejected: Point[R]{Do: func(ctx context.Context, f *Fuse, r R) error {
			defer hold(ctx, f, r, call)()
			first := f.expect("is rejected", call(ctx, r), rejected)
			return errors.Join(first, f.expect("is rejected", call(ctx, r), rejected)) // perhaps earlier than the first
		}},
		Waiting: Point[R]{Do: func(ctx context.Context, f *Fuse, r R) error {
			defer hold(ctx, f, r, call)()
			return call(ctx, r)
		}},
		Left: Point[R]{Do: func(ctx context.Context, f *Fuse, r R) error {
			ctx, leave := context.WithTimeout(ctx, 100*time.Millisecond)
			defer leave()
			return f.expect("is left", call(ctx, r), func(err error) bool { return err != nil })
		}},
		Retry: Point[R]{Do: again},
		Hedge: Point[R]{Do: again},
	}
}

// hold makes a call that lasts, and returns when it has begun.
func hold[R Rig](ctx context.Context, f *Fuse, r R, call func(context.Context, R) error) (wait func()) {
	var holder sync.WaitGroup
	holder.Go(func() { _ = f.Try(func() error { return call(ctx, r) }) })
	time.Sleep(100 * time.Millisecond)
	return holder.Wait
}

var errOther = errors.New("spilltest: the call has ended in another way")

// expect returns an error unless a call has ended as its point says.
func (f *Fuse) expect(what string, err error, isSo func(error) bool) error {
	switch {
	case isSo(err):
		f.Caught(err)
		return nil
	case err != nil:
		return err
	default:
		return errors.Join(errOther, errors.New("it is served, must be one that "+what))
	}
}

// ran returns an error unless Work has run so many times.
func (f *Fuse) ran(n int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.runs < n {
		return errors.New("spilltest: the call was sent once, must be sent again")
	}
	return nil
}

// longest is how long Work takes where others are to wait for it.
const longest = 3 * time.Second

// Work is the callback Work: what a backend or a handler does for a call. At the points Failed and Retry it returns an error, for
// Retry [ErrBusy] at first, which the adapter translates as for [TestRetries]; at Left it waits for the end of ctx, which others do
// for some seconds.
func (f *Fuse) Work(ctx context.Context) error {
	f.Burn("Work")
	f.mu.Lock()
	if f.lit {
		f.runs++
	}
	lit, runs := f.lit, f.runs
	f.mu.Unlock()
	switch {
	case !lit:
		return nil
	case f.Point == "Failed":
		return errWork
	case f.Point == "Retry" && runs == 1:
		return ErrBusy
	case f.Point == "Left", f.Point == "Rejected", f.Point == "Waiting", f.Point == "Hedge" && runs == 1:
		return pause(ctx, longest)
	default:
		return nil
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
