package spillgrpc

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
)

// TestGreedyCaller: one caller asks for ten times what the server can do, and twenty others
// for 60 % of it, all on one connection, without any quota.
func TestGreedyCaller(t *testing.T) {
	const (
		places = 4
		takes  = 20 * time.Millisecond
	)
	seconds := 4.0
	if testing.Short() {
		seconds = 2
	}
	const capacity = places * float64(time.Second) / float64(takes)
	inBubble(t, func(t *testing.T) {
		s := mustServer(t, ingress.Config{MaxInFlight: places, ShedMode: spillway.ModeOff}, ServerConfig{
			Classify: func(ctx context.Context, _ string) spillway.Call {
				return spillway.Call{Customer: metadata.ValueFromIncomingContext(ctx, "customer")[0]}
			},
		})
		cc := open(t, &service{unary: func(context.Context) error { time.Sleep(takes); return nil }}, s.Options()...).dial()
		start := time.Now()
		var offered, served [2]atomic.Int64
		var all sync.WaitGroup
		ask := func(kind int, name string) {
			counts := time.Since(start) > time.Second
			err := call(metadata.AppendToOutgoingContext(t.Context(), "customer", name), cc)
			if counts {
				offered[kind].Add(1)
				if err == nil {
					served[kind].Add(1)
				}
			}
		}
		for i := range 21 {
			random, kind, rate := rand.New(rand.NewPCG(uint64(i), 1)), 0, 0.03*capacity
			if i == 0 {
				kind, rate = 1, 10*capacity
			}
			all.Go(func() {
				for time.Since(start).Seconds() < seconds {
					time.Sleep(time.Duration(random.ExpFloat64() / rate * float64(time.Second)))
					all.Go(func() { ask(kind, strconv.Itoa(i)) })
				}
			})
		}
		all.Wait()
		share := float64(served[0].Load()) / float64(offered[0].Load())
		total := float64(served[0].Load()+served[1].Load()) / (seconds - 1) / capacity
		t.Logf("%.3f of the honest calls served, in all %.2f of the capacity", share, total)
		if share < 0.98 {
			t.Errorf("%.3f of the calls of honest callers served", share)
		}
		if total < 0.95 {
			t.Errorf("%.2f of the capacity is used", total)
		}
		nothingLeft(t, s)
	})
}
