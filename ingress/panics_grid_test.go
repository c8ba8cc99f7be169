package ingress_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cost"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/spilltest"
)

// A rig is a server whose work is done in this process.
type rig struct {
	*ingress.Server
	*spilltest.Fuse
}

func (r rig) Held() int {
	s := r.Stats(time.Now())
	return s.Shed.InFlight + s.Shed.Waiting + s.InFlight.InFlight + s.InFlight.Waiting
}

// allocator burns a fuse.
type allocator struct {
	quota.Allocator
	*spilltest.Fuse
}

func (a allocator) Known(string) bool {
	a.Burn("Allocator")
	return true
}

func (a allocator) Lease(now time.Time, d quota.Demand) quota.Grant {
	a.Burn("Allocator")
	return a.Allocator.Lease(now, d)
}

func TestPanics(t *testing.T) {
	for _, mode := range []spillway.Mode{spillway.ModeEnforce, spillway.ModeObserve} {
		t.Run(mode.String(), func(t *testing.T) { testPanics(t, mode) })
	}
}

func testPanics(t *testing.T, mode spillway.Mode) {
	t.Helper()
	points := spilltest.Calls(func(ctx context.Context, r rig) error {
		_, err := r.Do(ctx, spillway.Call{Key: "k", Customer: "c"}, r.Fuse.Work)
		return err
	}, nil)
	points.Retry.Do, points.Retry.Not = nil, "a Server sends nothing"
	points.Hedge.Do, points.Hedge.Not = nil, "a Server sends nothing"
	points.Stream.Not = "to a Server a stream is a request, which suspends"
	if mode == spillway.ModeObserve {
		points.Rejected.Do, points.Rejected.Not = nil, "nothing is rejected in this mode"
	}
	points.Late = map[string]string{
		"(*Server).dispatch": "waiters are let in by a goroutine of the Server, which tries again",
	}
	spilltest.TestPanics(t, func(t *testing.T, f *spilltest.Fuse) rig {
		local, err := quota.NewLocal(quota.LocalConfig{DefaultLimit: quota.Limit{Rate: 1e6}})
		if err != nil {
			t.Fatal(err)
		}
		costs, err := cost.New(cost.Config{})
		if err != nil {
			t.Fatal(err)
		}
		c := f.Ingress(ingress.Config{Quota: quota.Config{Allocator: allocator{local, f}}, Costs: costs, InFlightMode: mode, ShedMode: mode})
		c.CostKey = func(spillway.Call) string { f.Burn("CostKey"); return "route" }
		s, err := ingress.New(c)
		if err != nil {
			t.Fatal(err)
		}
		return rig{s, f}
	}, points)
}
