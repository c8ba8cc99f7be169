package spillredis

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/internal/redistest"
)

// TestRestart kills the server while callers write, and starts it again, at the same time with
// the policies and without. No acknowledged write is lost, none is made twice, and callers
// write again within a second. From the kill on, callers with the policies write no less than
// the others.
func TestRestart(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	p := redistest.Start(t)
	own, err := NewClient(&redis.Options{Network: "unix", Addr: p.Socket()}, egress.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	// Without its retries, with which go-redis makes writes twice.
	plain := redis.NewClient(&redis.Options{Network: "unix", Addr: p.Socket(), MaxRetries: -1})
	defer plain.Close()
	incr := func(c *redis.Client) func(context.Context, string) error {
		return func(ctx context.Context, key string) error { return c.Incr(ctx, key).Err() }
	}
	with, without := &redistest.Writer{Name: "with", Incr: incr(own)}, &redistest.Writer{Name: "without", Incr: incr(plain)}
	p.Restart(t, with, without)
	for _, w := range []*redistest.Writer{with, without} {
		w.Check(t, func(key string) (int64, error) {
			n, err := plain.Get(t.Context(), key).Int64()
			if errors.Is(err, redis.Nil) {
				err = nil
			}
			return n, err
		})
	}
	writes, back := with.Since()
	other, otherBack := without.Since()
	if *measure && back-otherBack > time.Second {
		t.Errorf("the first write is %v later than without the policies", back-otherBack)
	}
	if *measure && writes*10 < other*8 { // on a quiet machine they differ by some percent in both directions
		t.Errorf("since the kill %d writes were served, and %d without the policies", writes, other)
	}
}
