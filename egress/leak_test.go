package egress_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/retry"
)

// TestNothingIsLeaked: however 4,000 hedged calls end, among them panics, callers that leave
// and answers that go on after the call, nothing is in flight when all has ended.
func TestNothingIsLeaked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := must(t, egress.Config{
			MaxInFlight: 40, MaxInFlightByKey: map[string]int{"stream": 20},
			Hedge: retry.HedgeConfig{Delay: 20 * time.Millisecond},
		})
		var all sync.WaitGroup
		send := func(ctx context.Context, a *egress.Attempt) error {
			if rand.IntN(2) == 0 {
				place := new(inflight.Hold)
				a.Hold(ctx, place)
				all.Go(func() {
					<-time.After(rand.N(time.Second))
					place.End()
				})
			}
			select {
			case <-time.After(rand.N(100 * time.Millisecond)):
			case <-ctx.Done():
				return ctx.Err()
			}
			switch rand.IntN(5) {
			case 0:
				panic("send")
			case 1, 2:
				return errors.Join(errBackend)
			}
			return nil
		}
		for range 4000 {
			<-time.After(rand.N(time.Millisecond))
			all.Go(func() {
				defer func() { _ = recover() }()
				ctx, cancel := context.WithTimeout(t.Context(), rand.N(200*time.Millisecond))
				defer cancel()
				call := spillway.Call{Kind: []spillway.Kind{spillway.KindRead, spillway.KindWrite}[rand.IntN(4)/3], Key: []string{"", "stream"}[rand.IntN(2)]}
				_, _ = egress.Hedged(ctx, c, call, nil, func(ctx context.Context, a *egress.Attempt) (int, error) { return 0, send(ctx, a) }, nil)
			})
		}
		all.Wait()
		synctest.Wait()
		s := c.Stats(time.Now())
		if s.InFlight.InFlight != 0 || s.InFlightByKey["stream"].InFlight != 0 {
			t.Errorf("in flight at the end: %+v, %+v", s.InFlight, s.InFlightByKey)
		}
		if s.InFlight.RejectedTotal+s.InFlightByKey["stream"].RejectedTotal == 0 || s.Hedge.SentTotal == 0 {
			t.Errorf("no limit was reached, or nothing was hedged: %+v", s)
		}
	})
}
