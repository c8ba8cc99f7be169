package place_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/place"
)

// limit counts the places that are taken.
type limit struct {
	mu    sync.Mutex
	taken int
}

func (l *limit) take() spillway.Ticket {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken++
	return spillway.Ticket{By: l}
}

func (l *limit) Settle(time.Time, spillway.Ticket, spillway.Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken--
}

func (l *limit) want(t *testing.T, when string, n int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken != n {
		t.Errorf("%s: %d places are taken, want %d", when, l.taken, n)
	}
}

func settle(t *spillway.Ticket) { t.Settle(time.Time{}, spillway.OutcomeServed) }

func TestJoin(t *testing.T) {
	place.Expect()
	l, other := new(limit), new(limit)
	attempt := l.take()
	ctx := place.With(t.Context(), &attempt)
	if _, joined := place.Join(ctx, other); joined {
		t.Error("a stream has joined the place of another limit")
	}
	first, joined := place.Join(ctx, l)
	if !joined {
		t.Fatal("a stream has not joined the place of its attempt")
	}
	if _, joined := place.Join(ctx, l); joined {
		t.Error("two streams share one place")
	}
	settle(&first)
	settle(&first)
	l.want(t, "the stream has ended", 1)
	second, joined := place.Join(ctx, l)
	if !joined {
		t.Fatal("the attempt is sent again, and its place is lost")
	}
	settle(&attempt)
	l.want(t, "the attempt has ended before its stream", 1)
	if _, joined := place.Join(ctx, l); joined {
		t.Error("a stream has joined the place of an attempt that has ended")
	}
	settle(&second)
	settle(&attempt)
	l.want(t, "both have ended", 0)
}

func TestNothingToJoin(t *testing.T) {
	l := new(limit)
	for name, ctx := range map[string]context.Context{"none": nil, "empty": t.Context()} {
		if _, joined := place.Join(ctx, l); joined {
			t.Errorf("%s: joined", name)
		}
	}
	place.Expect()
	var nothing spillway.Ticket
	if ctx := t.Context(); place.With(ctx, &nothing) != ctx {
		t.Error("a ticket that holds nothing is passed on")
	}
}

// Streams that join at the same time leave nothing behind and never share.
func TestJoinConcurrently(t *testing.T) {
	place.Expect()
	l := new(limit)
	for range 200 {
		attempt := l.take()
		ctx := place.With(t.Context(), &attempt)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if ticket, joined := place.Join(ctx, l); joined {
					settle(&ticket)
				}
			})
		}
		all.Go(func() { settle(&attempt) })
		all.Wait()
		l.want(t, "all have ended", 0)
	}
}
