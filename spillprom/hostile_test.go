package spillprom

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/telemetry"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/quota/fleet"
	"github.com/seed90641741/spillway/ratelimit"
)

// series returns how many series metrics are, as a server that stores them counts.
func series(all map[string]*dto.MetricFamily) (n int) {
	for _, f := range all {
		for _, m := range f.GetMetric() {
			if h := m.GetHistogram(); h != nil {
				n += len(h.GetBucket()) + 3 // with +Inf, sum and count
			} else {
				n++
			}
		}
	}
	return n
}

// tables is how many series the tables of routes and customers have by default.
const tables = telemetry.DefaultRoutes + 1 + telemetry.DefaultCustomers + 1

// TestSeries: clients that make up a customer and a path for each request, with all
// classes, against a real server with a quota, and calls to as many backends.
func TestSeries(t *testing.T) {
	x := collector(t, Config{})
	limits, err := quota.NewLocal(quota.LocalConfig{Capacity: 1})
	if err != nil {
		t.Fatal(err)
	}
	server, err := ingress.New(ingress.Config{
		Observer: x, Trust: ingress.Trust{Boundary: ingress.Internal},
		Quota: quota.Config{Allocator: limits},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	x.AddServer("main", server)
	quotas, err := fleet.New(fleet.Config{})
	if err != nil {
		t.Fatal(err)
	}
	x.AddQuota("shop", quotas)
	pool, err := egress.NewPool(egress.Config{Observer: x}, 0)
	if err != nil {
		t.Fatal(err)
	}
	x.AddClient(client{pool})
	ctx, leave := context.WithCancel(context.Background())
	leave() // so that nothing waits for a retry
	requests := 100_000
	if testing.Short() {
		requests = 20_000
	}
	for i := range requests {
		call := spillway.Call{ // as one should not: paths are not routes
			Key: fmt.Sprint("/carts/", i), Customer: fmt.Sprint("customer", i), Criticality: spillway.Sheddable + spillway.Criticality(i%4),
		}
		if slot, rejection := server.Enter(ctx, call, ratelimit.Caller{}); !rejection.Rejected() {
			slot.Done(spillway.OutcomeServed)
		}
		if i%10 == 0 {
			_ = pool.For(fmt.Sprint("backend", i)).Do(ctx, call, func(context.Context, *egress.Attempt) error { return errBackend })
		}
	}
	everything(x, "ratelimit", "quota", "shed", "throttle", "inflight", "retry") // what such clients could not provoke
	all := gather(t, x)
	if n := series(all); n > 300+tables {
		t.Errorf("%d series, want at most 300 and %d", n, tables)
	} else {
		t.Logf("%d series, %d of them for routes and customers", n, tables)
	}
	rejected, routes := 0.0, 0.0
	for labels, n := range values(all["spillway_decisions_total"]) {
		if strings.Contains(labels, "outcome=rejected") && strings.Contains(labels, "mode=enforce") {
			rejected += n
		}
	}
	for _, n := range values(all["spillway_route_rejected_total"]) {
		routes += n
	}
	if rejected != routes || rejected < float64(requests)/2 {
		t.Errorf("%v rejections, %v by route", rejected, routes)
	}
}

var errBackend = errors.New("down")

type client struct{ *egress.Pool }

func (c client) Stats(now time.Time) map[string]egress.Stats { return c.Pool.Stats(now) }

// TestMemory: keys of a kilobyte, none of them twice, are not kept.
func TestMemory(t *testing.T) {
	x := collector(t, Config{})
	pad := strings.Repeat("x", 1000)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for i := range 100_000 {
		x.Observe(spillway.Event{
			Time: time.Unix(int64(i), 0), Policy: "quota", Rejected: true, Reason: spillway.ReasonQuota,
			Call: spillway.Call{Key: fmt.Sprint(i, pad), Customer: fmt.Sprint(i, pad)},
		})
	}
	if after := heap(); after > before+1<<20 {
		t.Errorf("%d bytes of 200 MB are kept", after-before)
	}
	runtime.KeepAlive(x)
}

// TestBackends: of many backends the most throttled ones have levels.
func TestBackends(t *testing.T) {
	x := collector(t, Config{})
	l := &levels{client: make(map[string]egress.Stats)}
	for i := range 5000 {
		s := egress.Stats{InFlight: inflight.Stats{InFlight: i, MaxInFlight: 10}}
		if i == 17 {
			s.Throttle[0].Probability = 0.1
		}
		l.client[fmt.Sprintf("backend%d\xff", i)] = s
	}
	x.AddClient(l)
	got := values(gather(t, x)["spillway_in_flight"])
	if len(got) != telemetry.DefaultBackends || got["cluster=backend17\uFFFD listener="] != 17 || got["cluster=backend4999\uFFFD listener="] != 4999 {
		t.Errorf("got %v", got)
	}
}
