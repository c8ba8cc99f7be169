package tunesuite_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/seed90641741/spillway/internal/thorough"
	"github.com/seed90641741/spillway/spillmongo/mongotest"
	"github.com/seed90641741/spillway/spillmongo/mongotune"
)

// slow is a server that executes 100 commands a second; opening a connection costs the same
// time as a command.
var slow = mongotest.Config{
	Pipes: true, Topology: mongotest.Standalone,
	Work: mongotest.Work{Tickets: 4, Command: 40 * time.Millisecond, Connect: 40 * time.Millisecond},
}

// A load is clients that send three times what the server can do, whatever it answers,
// and give up after a second. A connection whose command was given up is closed.
type load struct {
	served atomic.Int64
	work   sync.WaitGroup
	stop   chan struct{}
}

func startLoad(t *testing.T, d *mongotest.Deployment) *load {
	l := &load{stop: make(chan struct{})}
	client, err := mongo.Connect(d.Options().SetMaxAdaptiveRetries(0).SetRetryReads(false).SetMaxPoolSize(200).SetAppName("load"))
	if err != nil {
		t.Fatal(err)
	}
	coll := client.Database("test").Collection("things")
	l.work.Go(func() {
		defer client.Disconnect(context.Background())
		ticks := time.NewTicker(time.Second / 300)
		defer ticks.Stop()
		var all sync.WaitGroup
		defer all.Wait()
		for {
			select {
			case <-l.stop:
				return
			case <-ticks.C:
			}
			all.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				if err := coll.FindOne(ctx, bson.D{}).Err(); err == nil || errors.Is(err, mongo.ErrNoDocuments) {
					l.served.Add(1)
				}
			})
		}
	})
	return l
}

// goodput returns how many commands a second are served in the next d.
func (l *load) goodput(d time.Duration) float64 {
	before := l.served.Load()
	time.Sleep(d) // the time of the bubble
	return float64(l.served.Load()-before) / d.Seconds()
}

func (l *load) end() {
	close(l.stop)
	l.work.Wait()
}

func limits(requests, connections float64) bson.D {
	return bson.D{
		{Key: "ingressRequestRateLimiterEnabled", Value: true}, {Key: "ingressRequestAdmissionRatePerSec", Value: requests},
		{Key: "ingressRequestAdmissionBurstCapacitySecs", Value: 1.0},
		{Key: "ingressConnectionEstablishmentRateLimiterEnabled", Value: true}, {Key: "ingressConnectionEstablishmentRatePerSec", Value: connections},
		{Key: "ingressConnectionEstablishmentBurstCapacitySecs", Value: 1.0},
	}
}

// fixed returns the goodput with limits that do not move.
func fixed(t *testing.T, parameters bson.D) (goodput float64) {
	synctest.Test(t, func(t *testing.T) {
		mc := slow
		mc.Parameters = parameters
		l := startLoad(t, mongotest.Start(t, mc))
		defer l.end()
		time.Sleep(10 * time.Second)
		goodput = l.goodput(20 * time.Second)
	})
	return goodput
}

// bestFixed is the goodput of the best of many settings.
func bestFixed(t *testing.T) (best float64) {
	for _, requests := range []float64{70, 85, 92, 100} {
		best = max(best, fixed(t, limits(requests, 5)))
	}
	return best
}

// controller returns one for a server, whose client is disconnected at the end of the test.
func controller(t *testing.T, d *mongotest.Deployment, change func(*mongotune.ControllerConfig)) (*mongotune.Controller, error) {
	client, err := mongo.Connect(d.Options().SetAppName("tuner"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Disconnect(context.Background()) })
	c := mongotune.ControllerConfig{
		Client: client, AppName: "tuner", Enforce: true, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Targets:  mongotune.Targets{Latency: 120 * time.Millisecond, Queued: 10},
		Requests: &mongotune.Bounds{}, Connections: &mongotune.Bounds{},
	}
	change(&c)
	return mongotune.NewController(t.Context(), c)
}

// TestControllerFindsBothLimits: from bad starts, too high and too low, both limits are
// found within a minute, with the server killed and started again in the middle; then what
// was found is restored.
func TestControllerFindsBothLimits(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates some minutes of load")
	}
	best, none := bestFixed(t), fixed(t, nil)
	t.Logf("goodput: best fixed %.1f/s, without limits %.1f/s", best, none)
	if none > best/2 {
		t.Fatalf("without limits the goodput is %.1f/s, with the best ones %.1f/s: there is nothing to find", none, best)
	}
	starts := [][2]float64{{2000, 1000}, {10, 5}}
	if !thorough.Enabled() {
		starts = starts[:1] // minutes of virtual time each
	}
	for _, start := range starts {
		synctest.Test(t, func(t *testing.T) {
			d := mongotest.Start(t, slow)
			c, err := controller(t, d, func(c *mongotune.ControllerConfig) { c.Requests.Start, c.Connections.Start = start[0], start[1] })
			if err != nil {
				t.Fatal(err)
			}
			l := startLoad(t, d)
			defer l.end()
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- c.Run(ctx) }()
			time.Sleep(60 * time.Second)
			first := l.goodput(20 * time.Second)

			d.Node(0).Stop()
			d.Node(0).RunCommand("admin", append(bson.D{{Key: "setParameter", Value: 1}}, limits(700, 77)...)) // what it is started with
			time.Sleep(5 * time.Second)
			if err := d.Node(0).Restart(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(60 * time.Second)
			second := l.goodput(20 * time.Second)
			t.Logf("start %v: goodput %.1f/s, after the restart %.1f/s (%.0f %% and %.0f %% of the best fixed)",
				start, first, second, 100*first/best, 100*second/best)
			if min(first, second) < 0.9*best {
				t.Errorf("start %v: goodput %.1f/s, after the restart %.1f/s; the best fixed setting has %.1f/s", start, first, second, best)
			}
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
			for name, want := range map[string]float64{"ingressRequestAdmissionRatePerSec": 700, "ingressConnectionEstablishmentRatePerSec": 77} {
				if got := parameter(t, d, name); got != want {
					t.Errorf("%s is %v after the end, %v was found", name, got, want)
				}
			}
		})
	}
}

func parameter(t *testing.T, d *mongotest.Deployment, name string) float64 {
	t.Helper()
	doc, err := d.Node(0).RunCommand("admin", bson.D{{Key: "getParameter", Value: 1}, {Key: name, Value: 1}})
	if err != nil {
		t.Fatal(err)
	}
	v, _ := doc.Lookup(name).AsFloat64OK()
	return v
}

// TestControllerKeepsExemptions: the applications that the operator has exempted, such as the members of the
// replica set, stay exempt while the controller runs, and only they are afterwards.
func TestControllerKeepsExemptions(t *testing.T) {
	const name = "ingressRequestRateLimiterApplicationExemptions"
	for _, row := range []struct {
		found         bson.D
		during, after string
	}{
		{bson.D{{Key: name, Value: bson.D{{Key: "appNames", Value: bson.A{"OplogFetcher", "x"}}}}}, `["OplogFetcher","x","tuner"]`, `["OplogFetcher","x"]`},
		{bson.D{{Key: name, Value: bson.D{{Key: "appNames", Value: bson.A{"tuner"}}}}}, `["tuner"]`, `["tuner"]`},
		{nil, `["tuner"]`, `[]`},
	} {
		synctest.Test(t, func(t *testing.T) {
			with := slow
			with.Parameters = row.found
			d := mongotest.Start(t, with)
			exempted := func() string {
				doc, err := d.Node(0).RunCommand("admin", bson.D{{Key: "getParameter", Value: 1}, {Key: name, Value: 1}})
				if err != nil {
					t.Fatal(err)
				}
				return strings.ReplaceAll(doc.Lookup(name).String(), " ", "")
			}
			c, err := controller(t, d, func(*mongotune.ControllerConfig) {})
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- c.Run(ctx) }()
			time.Sleep(time.Second)
			during := exempted()
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
			if after := exempted(); during != row.during || after != row.after {
				t.Errorf("found %v: exempt were %s, and %s afterwards; want %s and %s", row.found, during, after, row.during, row.after)
			}
		})
	}
}

// TestControllerObserves: without Enforce nothing is set, and what would be is said.
func TestControllerObserves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		d := mongotest.Start(t, slow)
		before, _ := d.Node(0).RunCommand("admin", bson.D{{Key: "getParameter", Value: "*"}})
		c, err := controller(t, d, func(c *mongotune.ControllerConfig) {
			c.Enforce, c.Logger = false, slog.New(slog.NewTextHandler(&log, nil))
		})
		if err != nil {
			t.Fatal(err)
		}
		l := startLoad(t, d)
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		if err := c.Run(ctx); err != nil {
			t.Error(err)
		}
		l.end()
		after, _ := d.Node(0).RunCommand("admin", bson.D{{Key: "getParameter", Value: "*"}})
		if withoutTime(before) != withoutTime(after) {
			t.Errorf("parameters are %v, were %v", after, before)
		}
		if !strings.Contains(log.String(), "would go from") || !strings.Contains(log.String(), "latency is") {
			t.Errorf("log: %s", log.String())
		}
	})
}

// withoutTime returns the parameters of a reply.
func withoutTime(doc bson.Raw) string {
	var d bson.D
	_ = bson.Unmarshal(doc, &d)
	out := bson.D{}
	for _, e := range d {
		if !strings.HasPrefix(e.Key, "$") && e.Key != "operationTime" {
			out = append(out, e)
		}
	}
	return out.String()
}

// TestControllerLooksAgainAfterARestart: the server rejects the first questions about what it was started with. The controller
// asks until it knows, and so exempts itself again, and restores what the server was started with.
func TestControllerLooksAgainAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const exemptions, rate = "ingressRequestRateLimiterApplicationExemptions", "ingressRequestAdmissionRatePerSec"
		d := mongotest.Start(t, slow)
		c, err := controller(t, d, func(c *mongotune.ControllerConfig) { c.Connections = nil })
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		time.Sleep(5 * time.Second)
		d.Node(0).Stop()
		d.Node(0).RunCommand("admin", append(bson.D{{Key: "setParameter", Value: 1}}, limits(700, 77)...)) // what it is started with
		d.Node(0).RunCommand("admin", bson.D{{Key: "setParameter", Value: 1}, {Key: exemptions, Value: bson.D{{Key: "appNames", Value: bson.A{"x"}}}}})
		time.Sleep(5 * time.Second)
		if err := d.Node(0).Restart(); err != nil {
			t.Fatal(err)
		}
		d.Node(0).RunCommand("admin", bson.D{
			{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: bson.D{{Key: "times", Value: 4}}},
			{Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{"getParameter"}}, {Key: "errorCode", Value: 462}, {Key: "appName", Value: "tuner"}}},
		})
		time.Sleep(20 * time.Second)
		doc, err := d.Node(0).RunCommand("admin", bson.D{{Key: "getParameter", Value: 1}, {Key: exemptions, Value: 1}})
		if got := strings.ReplaceAll(doc.Lookup(exemptions).String(), " ", ""); err != nil || got != `["x","tuner"]` {
			t.Errorf("exempt are %s, %v; want x and tuner", got, err)
		}
		if got := parameter(t, d, rate); got == 700 {
			t.Errorf("the limit is %v, as the server was started: it was not set again", got)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got := parameter(t, d, rate); got != 700 {
			t.Errorf("the limit is %v after the end, and the server was started with 700", got)
		}
	})
}

// TestControllerIsRejected: servers that lack what is needed are rejected before anything
// is changed, and a parameter that cannot be set leaves all others as they were.
func TestControllerIsRejected(t *testing.T) {
	fail := func(d *mongotest.Deployment, command string, code int, mode any) {
		d.Node(0).RunCommand("admin", bson.D{
			{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: mode},
			{Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{command}}, {Key: "errorCode", Value: code}}},
		})
	}
	synctest.Test(t, func(t *testing.T) {
		with := slow
		with.Parameters = bson.D{{Key: "ingressRequestRateLimiterApplicationExemptions", Value: bson.D{{Key: "appNames", Value: bson.A{"x"}}}}}
		d := mongotest.Start(t, with)
		fail(d, "getParameter", 72, "alwaysOn")
		if _, err := controller(t, d, func(*mongotune.ControllerConfig) {}); !errors.Is(err, mongotune.ErrUnsupported) {
			t.Errorf("without parameters: %v", err)
		}
		fail(d, "getParameter", 72, "off")
		if _, err := controller(t, d, func(c *mongotune.ControllerConfig) { c.Targets.CPU = 0.9 }); err == nil || !strings.Contains(err.Error(), "does not report cpu") {
			t.Errorf("without extra_info: %v", err)
		}
		for skip, want := range map[int]string{0: "requests cannot be set", 2: "connections cannot be set"} {
			c, err := controller(t, d, func(*mongotune.ControllerConfig) {})
			if err != nil {
				t.Fatal(err)
			}
			before, _ := d.Node(0).RunCommand("admin", bson.D{{Key: "getParameter", Value: "*"}})
			d.Node(0).RunCommand("admin", bson.D{
				{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: bson.D{{Key: "skip", Value: skip}}},
				{Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{"setParameter"}}, {Key: "errorCode", Value: 13}}},
			})
			if skip == 2 {
				time.AfterFunc(time.Second, func() { fail(d, "setParameter", 13, "off") })
			}
			if err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("read-only parameters: %v, want %s", err, want)
			}
			fail(d, "setParameter", 13, "off")
			after, _ := d.Node(0).RunCommand("admin", bson.D{{Key: "getParameter", Value: "*"}})
			if skip == 2 && withoutTime(before) != withoutTime(after) {
				t.Errorf("parameters are %v, were %v", after, before)
			}
		}
	})
	if _, err := mongotune.NewController(t.Context(), mongotune.ControllerConfig{Targets: mongotune.Targets{Queued: 1}}); err == nil {
		t.Error("no limits are accepted")
	}
	if _, err := mongotune.NewController(t.Context(), mongotune.ControllerConfig{Requests: &mongotune.Bounds{}}); err == nil {
		t.Error("no targets are accepted")
	}
}
