package mongotest_test

import (
	"errors"
	"net"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed90641741/spillway/spillmongo/mongotest"
)

// requests are the parameters that let in one request in a thousand seconds, after
// the first burst of them.
func requests(burst float64, more ...bson.E) bson.D {
	return append(bson.D{
		{Key: "ingressRequestRateLimiterEnabled", Value: true},
		{Key: "ingressRequestAdmissionRatePerSec", Value: 0.001},
		{Key: "ingressRequestAdmissionBurstCapacitySecs", Value: 1000 * burst},
	}, more...)
}

func TestRequestLimiter(t *testing.T) {
	d := mongotest.Start(t, mongotest.Config{Parameters: requests(2)})
	client := connect(t, d, noRetries())
	for i := range 4 {
		err := client.Ping(t.Context(), nil)
		if i < 2 && err != nil {
			t.Error(err)
		}
		if i >= 2 && (code(err) != 462 || !hasLabels(err, both...)) {
			t.Errorf("got %v, want code 462 with both labels", err)
		}
	}
	if s := d.Node(0).Stats(); s.Rejected != 2 || s.Commands["ping"] != 4 {
		t.Errorf("%d of %d pings rejected, want 2 of 4", s.Rejected, s.Commands["ping"])
	}
	status := run(t, d.Node(0), bson.D{{Key: "serverStatus", Value: 1}})
	for field, want := range map[string]int64{
		"attemptedAdmissions": 4, "successfulAdmissions": 2, "rejectedAdmissions": 2, "exemptedAdmissions": 0, "totalAvailableTokens": 0,
	} {
		if got := status.Lookup("network", "ingressRequestRateLimiter", field).AsInt64(); got != want {
			t.Errorf("%s is %d, want %d", field, got, want)
		}
	}
}

func TestRequestLimiterWithoutRetries(t *testing.T) {
	d := mongotest.Start(t, mongotest.Config{Parameters: requests(1,
		bson.E{Key: "ingressRequestRateLimiterAllowRetries", Value: false},
		bson.E{Key: "externalClientBaseBackoffMS", Value: 50},
	)})
	client := connect(t, d, noRetries())
	if err := client.Ping(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	err := client.Ping(t.Context(), nil)
	if code(err) != 462 || !hasLabels(err, "SystemOverloadedError") {
		t.Errorf("got %v, want code 462 with one label", err)
	}
	var ce mongo.CommandError
	if !errors.As(err, &ce) || ce.Raw.Lookup("baseBackoffMS").AsInt64() != 50 {
		t.Errorf("got %v, want a base backoff of 50 ms", ce.Raw)
	}
}

func TestRequestLimiterExempts(t *testing.T) {
	for _, test := range []struct {
		name   string
		exempt bson.E
		admits bool
	}{
		{"application", bson.E{Key: "ingressRequestRateLimiterApplicationExemptions", Value: bson.D{{Key: "appNames", Value: bson.A{"tes"}}}}, true},
		{"driver", bson.E{Key: "ingressRequestRateLimiterApplicationExemptions", Value: bson.D{{Key: "appNames", Value: bson.A{"mongo-go"}}}}, true},
		{"another", bson.E{Key: "ingressRequestRateLimiterApplicationExemptions", Value: bson.D{{Key: "appNames", Value: bson.A{"ester"}}}}, false},
		{"network", bson.E{Key: "ingressRequestRateLimiterExemptions", Value: bson.D{{Key: "ranges", Value: bson.A{"127.0.0.0/8"}}}}, true},
		{"address", bson.E{Key: "ingressRequestRateLimiterExemptions", Value: bson.D{{Key: "ranges", Value: bson.A{"127.0.0.1"}}}}, true},
		{"another network", bson.E{Key: "ingressRequestRateLimiterExemptions", Value: bson.D{{Key: "ranges", Value: bson.A{"10.0.0.0/8"}}}}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := mongotest.Start(t, mongotest.Config{Parameters: requests(1, test.exempt)})
			client := connect(t, d, noRetries().SetAppName("tester"))
			client.Ping(t.Context(), nil)
			if err := client.Ping(t.Context(), nil); (err == nil) != test.admits {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestRequestQueue has three requests at once, and room for one to wait.
func TestRequestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, client := inBubble(t, mongotest.Config{Parameters: bson.D{
			{Key: "ingressRequestRateLimiterEnabled", Value: true},
			{Key: "ingressRequestAdmissionRatePerSec", Value: 0.1},
			{Key: "ingressRequestAdmissionBurstCapacitySecs", Value: 10},
			{Key: "ingressRequestAdmissionMaxQueueDepth", Value: 1},
		}})
		start := time.Now()
		var mu sync.Mutex
		var waits []time.Duration
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				err := client.Ping(t.Context(), nil)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					waits = append(waits, time.Since(start).Round(time.Second))
				} else if code(err) != 462 {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if len(waits) != 2 || waits[0] != 0 || waits[1] != 10*time.Second {
			t.Errorf("admitted after %v, want after 0 and 10 s", waits)
		}
		if s := d.Node(0).Stats(); s.Rejected != 1 {
			t.Errorf("%d rejected, want 1", s.Rejected)
		}
	})
}

// inBubble returns a deployment and a client of it, for a synctest bubble.
func inBubble(t *testing.T, c mongotest.Config) (*mongotest.Deployment, *mongo.Client) {
	t.Helper()
	c.Pipes = true
	d := mongotest.Start(t, c)
	return d, connect(t, d, noRetries())
}

// connections are parameters that let in connections at a rate, one at once.
func connections(rate float64, depth int, more ...bson.E) bson.D {
	return append(bson.D{
		{Key: "ingressConnectionEstablishmentRateLimiterEnabled", Value: true},
		{Key: "ingressConnectionEstablishmentRatePerSec", Value: rate},
		{Key: "ingressConnectionEstablishmentBurstCapacitySecs", Value: 1 / rate},
		{Key: "ingressConnectionEstablishmentMaxQueueDepth", Value: depth},
	}, more...)
}

// isOpen reports whether a connection to n is still open after d, without a word said.
func isOpen(t *testing.T, n *mongotest.Node, d time.Duration) bool {
	t.Helper()
	c, err := net.Dial("tcp", n.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetReadDeadline(time.Now().Add(d))
	_, err = c.Read(make([]byte, 1))
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

func TestConnectionLimiter(t *testing.T) {
	d := mongotest.Start(t, mongotest.Config{Parameters: connections(0.001, 1)})
	n := d.Node(0)
	for i, open := range []bool{true, true, false, false} { // one token, one place in the queue
		if got := isOpen(t, n, 50*time.Millisecond); got != open {
			t.Errorf("connection %d: open is %v, want %v", i, got, open)
		}
	}
	for n.Stats().Connections > 2 && t.Context().Err() == nil { // those that were rejected go a moment later
		runtime.Gosched()
	}
	if s := n.Stats(); s.ConnectionsRefused != 2 || s.Accepted != 4 || s.Connections != 2 {
		t.Errorf("%d rejected and %d open of %d, want 2 and 2 of 4", s.ConnectionsRefused, s.Connections, s.Accepted)
	}
	status := run(t, n, bson.D{{Key: "serverStatus", Value: 1}}).Lookup("connections").Document()
	if got := status.Lookup("establishmentRateLimit", "rejected").AsInt64(); got != 2 {
		t.Errorf("rejected is %d, want 2", got)
	}
	if got := status.Lookup("queuedForEstablishment").AsInt64(); got != 1 {
		t.Errorf("queued is %d, want 1", got)
	}
}

// TestConnectionQueueIsLeft has a client that goes while it waits, and one that then
// finds its place free.
func TestConnectionQueueIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mongotest.Start(t, mongotest.Config{Pipes: true, Parameters: connections(0.01, 1)})
		dial := func() net.Conn {
			c, err := d.Options().Dialer.DialContext(t.Context(), "tcp", d.Node(0).Addr())
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			return c
		}
		defer dial().Close()
		dial().Close()
		synctest.Wait()
		defer dial().Close()
		status := run(t, d.Node(0), bson.D{{Key: "serverStatus", Value: 1}}).Lookup("queues", "ingressSessionEstablishment").Document()
		for field, want := range map[string]int64{"addedToQueue": 2, "removedFromQueue": 1, "interruptedInQueue": 1, "rejectedAdmissions": 0} {
			if got := status.Lookup(field).AsInt64(); got != want {
				t.Errorf("%s is %d, want %d", field, got, want)
			}
		}
		time.Sleep(200 * time.Second)
		if s := d.Node(0).Stats(); s.Connections != 2 || s.ConnectionsRefused != 0 {
			t.Errorf("%d open, %d rejected, want 2 and none", s.Connections, s.ConnectionsRefused)
		}
	})
}

func TestConnectionBypass(t *testing.T) {
	d := mongotest.Start(t, mongotest.Config{Parameters: connections(0.001, 0, bson.E{
		Key: "ingressConnectionEstablishmentRateLimiterBypass", Value: bson.D{{Key: "ranges", Value: bson.A{"127.0.0.1/32"}}},
	})})
	client := connect(t, d, noRetries())
	if err := client.Ping(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if s := d.Node(0).Stats(); s.Accepted < 2 || s.ConnectionsRefused != 0 {
		t.Errorf("%d of %d connections refused", s.ConnectionsRefused, s.Accepted)
	}
}

// TestConnectionRefusalIsLabelled is what the driver makes of a connection that is
// closed before its hello is answered. Behind a load balancer no monitor takes the
// token.
func TestConnectionRefusalIsLabelled(t *testing.T) {
	d := mongotest.Start(t, mongotest.Config{Topology: mongotest.LoadBalanced, Parameters: connections(0.001, 0)})
	if err := connect(t, d, noRetries()).Ping(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if err := connect(t, d, noRetries()).Ping(t.Context(), nil); !hasLabels(err, both...) {
		t.Errorf("got %v, want both labels", err)
	}
	if s := d.Node(0).Stats(); s.ConnectionsRefused != 1 {
		t.Errorf("%d connections refused, want 1", s.ConnectionsRefused)
	}
}

func TestSetParameter(t *testing.T) {
	n := mongotest.Start(t, mongotest.Config{}).Node(0)
	get := func(name string) bson.RawValue {
		return run(t, n, bson.D{{Key: "getParameter", Value: 1}, {Key: name, Value: 1}}).Lookup(name)
	}
	reply := run(t, n, bson.D{{Key: "setParameter", Value: 1}, {Key: "ingressRequestAdmissionRatePerSec", Value: 20}})
	if was := reply.Lookup("was").AsFloat64(); was != 2147483647 {
		t.Errorf("was is %v", was)
	}
	if now := get("ingressRequestAdmissionRatePerSec").AsFloat64(); now != 20 {
		t.Errorf("rate is %v, want 20", now)
	}
	for _, bad := range []bson.E{
		{Key: "ingressRequestAdmissionRatePerSec", Value: 0},
		{Key: "ingressRequestAdmissionRatePerSec", Value: "fast"},
		{Key: "ingressRequestAdmissionBurstCapacitySecs", Value: -1},
		{Key: "ingressRequestAdmissionBurstCapacitySecs", Value: 0.001},
		{Key: "ingressConnectionEstablishmentMaxQueueDepth", Value: -1},
		{Key: "ingressRequestRateLimiterExemptions", Value: bson.D{{Key: "ranges", Value: bson.A{"nowhere"}}}},
		{Key: "noSuchParameter", Value: 1},
	} {
		if _, err := n.RunCommand("admin", bson.D{{Key: "setParameter", Value: 1}, {Key: "ingressRequestRateLimiterEnabled", Value: true}, bad}); err == nil {
			t.Errorf("%v was accepted", bad)
		}
		if _, err := mongotest.New(mongotest.Config{Parameters: bson.D{{Key: "ingressRequestAdmissionRatePerSec", Value: 20}, bad}}); err == nil {
			t.Errorf("%v was accepted at the start", bad)
		}
	}
	if get("ingressRequestRateLimiterEnabled").Boolean() {
		t.Error("a parameter was set together with a bad one")
	}
	if all := run(t, n, bson.D{{Key: "getParameter", Value: "*"}}); all.Lookup("ingressConnectionEstablishmentRatePerSec").AsFloat64() != 2147483647 {
		t.Errorf("all parameters are %v", all)
	}
}

// TestStrangersTakeNoAdmissions: clients that have not authenticated cannot use up the rate of
// authenticated ones.
func TestStrangersTakeNoAdmissions(t *testing.T) {
	d := mongotest.Start(t, mongotest.Config{Users: map[string]string{"ann": "secret"}, Parameters: requests(1)})
	stranger := connect(t, d, noRetries())
	for range 3 {
		if err := stranger.Ping(t.Context(), nil); code(err) != 13 {
			t.Errorf("got %v, want code 13", err)
		}
	}
	ann := connect(t, d, noRetries().SetAuth(options.Credential{Username: "ann", Password: "secret"}))
	for i, want := range []int{0, 462} {
		if err := ann.Ping(t.Context(), nil); code(err) != want {
			t.Errorf("ping %d: got %v, want code %d", i, err, want)
		}
	}
}
