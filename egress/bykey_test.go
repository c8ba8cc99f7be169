package egress_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/inflight"
)

// Calls of a key that has a limit count there and nowhere else.
func TestLimitByKey(t *testing.T) {
	config := egress.Config{MaxInFlight: 1, MaxInFlightByKey: map[string]int{"watch": 2, "poll": -1}}
	client := must(t, config)
	var held []*inflight.Hold
	try := func(key string) error {
		return client.Do(t.Context(), spillway.Call{Key: key}, func(ctx context.Context, a *egress.Attempt) error {
			held = append(held, new(inflight.Hold))
			a.Hold(ctx, held[len(held)-1])
			return nil
		})
	}
	for _, step := range []struct {
		key      string
		rejected bool
	}{{"watch", false}, {"get", false}, {"get", true}, {"watch", false}, {"watch", true}, {"poll", false}, {"poll", false}} {
		if err := try(step.key); errors.Is(err, spillway.ErrRejected) != step.rejected {
			t.Errorf("%s: %v, want a rejection: %t", step.key, err, step.rejected)
		}
	}
	want := func(when string, all, watch, poll int) {
		t.Helper()
		s := client.Stats(time.Now())
		got := [3]int{s.InFlight.InFlight, s.InFlightByKey["watch"].InFlight, s.InFlightByKey["poll"].InFlight}
		if got != [3]int{all, watch, poll} {
			t.Errorf("%s: %v in flight, want %v", when, got, []int{all, watch, poll})
		}
	}
	want("under limits", 1, 2, 2)
	config.MaxInFlightByKey = map[string]int{"watch": 3}
	if err := client.Update(config); err != nil {
		t.Fatal(err)
	}
	want("updated", 1, 2, 0)
	if err := try("watch"); err != nil {
		t.Errorf("under a raised limit: %v", err)
	}
	for i := range held {
		held[i].End()
	}
	want("all have ended", 0, 0, 0)
}

func TestWrongLimitByKey(t *testing.T) {
	if strconv.IntSize == 32 {
		t.Skip("no int is too large")
	}
	large := int64(1 << 40)
	_, err := egress.New(egress.Config{MaxInFlightByKey: map[string]int{"watch": int(large)}})
	if err == nil || !strings.Contains(err.Error(), `MaxInFlightByKey["watch"] is 1099511627776, must`) {
		t.Errorf("error %v", err)
	}
}

// A Pool keeps a client while calls under a limit by key are in flight.
func TestPoolKeepsClientsInUse(t *testing.T) {
	pool, err := egress.NewPool(egress.Config{MaxInFlightByKey: map[string]int{"watch": -1}}, 2)
	if err != nil {
		t.Fatal(err)
	}
	var held inflight.Hold
	busy := pool.For("busy")
	_ = busy.Do(t.Context(), spillway.Call{Key: "watch"}, func(ctx context.Context, a *egress.Attempt) error {
		a.Hold(ctx, &held)
		return nil
	})
	for _, backend := range []string{"a", "b", "c", "d"} {
		pool.For(backend)
	}
	if pool.For("busy") != busy {
		t.Error("the client with a call under way was let go")
	}
	held.End()
}
