package mongotest_test

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/seed90641741/spillway/spillmongo/mongotest"
)

// TestPrimaryMoves has a client that learns of a new primary by the hello that it
// awaits: in the bubble no time passes until it writes there.
func TestPrimaryMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, client := inBubble(t, mongotest.Config{Nodes: 3, HelloInterval: -1})
		coll := client.Database("db").Collection("c")
		start := time.Now()
		for _, primary := range []int{0, 2, 1} {
			d.SetPrimary(primary)
			synctest.Wait()
			before := d.Node(primary).Stats().Commands["insert"]
			if _, err := coll.InsertOne(t.Context(), bson.D{}); err != nil {
				t.Fatal(err)
			}
			if after := d.Node(primary).Stats().Commands["insert"]; after != before+1 {
				t.Errorf("the insert did not go to node %d", primary)
			}
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("took %v", took)
		}
		d.SetPrimary(-1)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := coll.InsertOne(ctx, bson.D{}); err == nil {
			t.Error("an insert without a primary succeeded")
		}
		secondary := coll.Clone(options.Collection().SetReadPreference(readpref.Secondary()))
		if n, err := secondary.EstimatedDocumentCount(t.Context()); n != 3 || err != nil {
			t.Errorf("a secondary has %d documents, %v, want 3", n, err)
		}
	})
}

// TestSecondary speaks to one node directly.
func TestSecondary(t *testing.T) {
	d := mongotest.Start(t, mongotest.Config{Nodes: 2})
	direct := options.Client().ApplyURI("mongodb://" + d.Node(1).Addr() + "/?directConnection=true")
	client, err := mongo.Connect(direct, noRetries())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Disconnect(t.Context())
	coll := client.Database("db").Collection("c")
	if _, err := coll.InsertOne(t.Context(), bson.D{}); code(err) != 10107 {
		t.Errorf("got %v, want code 10107", err)
	}
	if _, err := coll.EstimatedDocumentCount(t.Context()); err != nil { // the driver adds primaryPreferred
		t.Error(err)
	}
	if err := client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "isMaster", Value: 1}}).Err(); err != nil {
		t.Error(err)
	}
}

// TestStepDown hands over by command.
func TestStepDown(t *testing.T) {
	d := mongotest.Start(t, mongotest.Config{Nodes: 2})
	run(t, d.Node(0), bson.D{{Key: "replSetStepDown", Value: 1}})
	hello := run(t, d.Node(0), bson.D{{Key: "hello", Value: 1}})
	if hello.Lookup("isWritablePrimary").Boolean() || hello.Lookup("primary").StringValue() != d.Node(1).Addr() {
		t.Errorf("hello is %v", hello)
	}
}

// TestHelloByTopology is what each kind of node says of itself.
func TestHelloByTopology(t *testing.T) {
	for _, test := range []struct {
		topology mongotest.Topology
		fields   string
		uri      string
	}{
		{mongotest.Standalone, "", "/"},
		{mongotest.ReplicaSet, "setName hosts primary me electionId", "/?replicaSet=mongotest"},
		{mongotest.Sharded, "msg", "/"},
		{mongotest.LoadBalanced, "msg serviceId", "/?loadBalanced=true"},
	} {
		t.Run(test.topology.String(), func(t *testing.T) {
			d := mongotest.Start(t, mongotest.Config{Topology: test.topology})
			hello := run(t, d.Node(0), bson.D{{Key: "hello", Value: 1}, {Key: "loadBalanced", Value: true}})
			for _, f := range []string{"setName", "hosts", "primary", "me", "electionId", "msg", "serviceId"} {
				if has := !hello.Lookup(f).IsZero(); has != strings.Contains(test.fields, f) {
					t.Errorf("hello has %s: %v", f, has)
				}
			}
			if !strings.HasSuffix(d.URI(), test.uri) {
				t.Errorf("the URI is %s", d.URI())
			}
		})
	}
}

// TestLoadBalancer has connections at two nodes behind one address.
func TestLoadBalancer(t *testing.T) {
	d := mongotest.Start(t, mongotest.Config{Topology: mongotest.LoadBalanced, Nodes: 2})
	client := connect(t, d, noRetries())
	for _, n := range d.Nodes() {
		failCommand(t, n, times(1), "failCommands", bson.A{"ping"}, "blockConnection", true, "blockTimeMS", 50)
	}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			if err := client.Ping(t.Context(), nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i, n := range d.Nodes() {
		if s := n.Stats(); s.Commands["ping"] != 1 || s.Connections != 1 {
			t.Errorf("node %d got %d pings over %d connections, want one each", i, s.Commands["ping"], s.Connections)
		}
	}
	plain := options.Client().ApplyURI(strings.TrimSuffix(d.URI(), "?loadBalanced=true") + "?serverSelectionTimeoutMS=50")
	if client, err := mongo.Connect(plain); err != nil || client.Ping(t.Context(), nil) == nil {
		t.Error("a client that knows of no load balancer was let in", err)
	} else {
		client.Disconnect(t.Context())
	}
}

// TestStopAndRestart takes a mongos away and gives it back.
func TestStopAndRestart(t *testing.T) {
	for _, pipes := range []bool{false, true} {
		d := mongotest.Start(t, mongotest.Config{Topology: mongotest.Standalone, Pipes: pipes})
		client := connect(t, d, noRetries(), options.Client().SetServerSelectionTimeout(10*time.Second).SetHeartbeatInterval(500*time.Millisecond))
		coll := client.Database("db").Collection("c")
		if _, err := coll.InsertOne(t.Context(), bson.D{}); err != nil {
			t.Fatal(err)
		}
		d.Node(0).Stop()
		if s := d.Node(0).Stats(); s.Connections != 0 {
			t.Errorf("%d connections are open after Stop", s.Connections)
		}
		soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if _, err := coll.EstimatedDocumentCount(soon); err == nil {
			t.Error("a node that was stopped answered")
		}
		cancel()
		if err := d.Node(0).Restart(); err != nil {
			t.Fatal(err)
		}
		if n, err := coll.EstimatedDocumentCount(t.Context()); n != 1 || err != nil {
			t.Errorf("%d documents, %v, want 1", n, err)
		}
	}
}

// TestRestartBesideAnother: the others name a node that comes back.
func TestRestartBesideAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, client := inBubble(t, mongotest.Config{Nodes: 2})
		asked := make(chan struct{})
		go func() {
			defer close(asked)
			for range 100 {
				if err := client.Database("admin").RunCommand(t.Context(), bson.D{{Key: "hello", Value: 1}}).Err(); err != nil {
					t.Error(err)
				}
			}
		}()
		for range 20 {
			if err := d.Node(1).Restart(); err != nil {
				t.Error(err)
			}
		}
		<-asked
	})
}

// TestDisconnect closes the connections of a client, which opens new ones.
func TestDisconnect(t *testing.T) {
	d := mongotest.Start(t, mongotest.Config{Topology: mongotest.LoadBalanced}) // so that no monitor opens one too
	client := connect(t, d, noRetries())
	if err := client.Ping(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	d.Node(0).Disconnect()
	if err := client.Ping(t.Context(), nil); !mongo.IsNetworkError(err) {
		t.Errorf("got %v, want a network error", err)
	}
	if err := client.Ping(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if s := d.Node(0).Stats(); s.Accepted != 2 {
		t.Errorf("%d connections, want 2", s.Accepted)
	}
}

// TestHeartbeatsStream counts the heartbeats in a minute of a monitor that is not held
// back, and of one that is held back as by a MongoDB server.
func TestHeartbeatsStream(t *testing.T) {
	for _, test := range []struct {
		interval  time.Duration
		low, high int
	}{
		{0, 590, 610},
		{time.Second, 58, 62},
		{-1, 5, 9},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := mongotest.Start(t, mongotest.Config{Pipes: true, HelloInterval: test.interval})
			var mu sync.Mutex
			beats := 0
			connect(t, d, options.Client().SetServerMonitor(&event.ServerMonitor{
				ServerHeartbeatSucceeded: func(*event.ServerHeartbeatSucceededEvent) {
					mu.Lock()
					defer mu.Unlock()
					beats++
				},
			}))
			time.Sleep(time.Minute)
			mu.Lock()
			defer mu.Unlock()
			if beats < test.low || beats > test.high {
				t.Errorf("interval %v: %d heartbeats in a minute, want %d to %d", test.interval, beats, test.low, test.high)
			}
		})
	}
}

// TestObserve sees each command as it came.
func TestObserve(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]mongotest.Command{}
	d := mongotest.Start(t, mongotest.Config{Observe: func(c mongotest.Command) {
		mu.Lock()
		defer mu.Unlock()
		c.Body = append(bson.Raw(nil), c.Body...)
		seen[c.Name] = c
	}})
	client := connect(t, d, options.Client().SetAppName("watched"))
	client.Database("db").Collection("c").FindOne(t.Context(), bson.D{{Key: "a", Value: 1}})
	mu.Lock()
	defer mu.Unlock()
	find := seen["find"]
	if find.AppName != "watched" || find.Database != "db" || find.ConnectionID == 0 || find.Body.Lookup("filter", "a").AsInt64() != 1 {
		t.Errorf("saw %+v", find)
	}
	if hello := seen["hello"].Body; hello.Lookup("backpressure").IsZero() {
		if legacy := seen["isMaster"].Body; legacy.Lookup("backpressure").IsZero() {
			t.Errorf("the handshake has no backpressure: %v %v", hello, legacy)
		}
	}
}

// TestNothingIsLeft counts goroutines and connections after Close.
func TestNothingIsLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	for _, c := range topologies {
		d, err := mongotest.New(c)
		if err != nil {
			t.Fatal(err)
		}
		client, err := mongo.Connect(d.Options())
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Ping(t.Context(), nil); err != nil {
			t.Error(err)
		}
		if err := client.Disconnect(t.Context()); err != nil {
			t.Error(err)
		}
		d.Close()
		d.Close()
		for _, n := range d.Nodes() {
			if s := n.Stats(); s.Connections != 0 {
				t.Errorf("%v: %d connections are left", c.Topology, s.Connections)
			}
		}
	}
	for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}

// TestCloseWhileBusy closes a deployment under a client that waits for an hour.
func TestCloseWhileBusy(t *testing.T) {
	for _, pipes := range []bool{false, true} {
		d := mongotest.Start(t, mongotest.Config{Pipes: pipes, HelloInterval: -1})
		client := connect(t, d, noRetries())
		failCommand(t, d.Node(0), "alwaysOn", "failCommands", bson.A{"ping"}, "blockConnection", true, "blockTimeMS", 3600_000)
		done := make(chan error, 1)
		go func() { done <- client.Ping(t.Context(), nil) }()
		for d.Node(0).Stats().Commands["ping"] == 0 {
			runtime.Gosched()
		}
		d.Close()
		if err := <-done; err == nil {
			t.Error("the ping was answered")
		}
	}
}

func TestConfigNamesBadField(t *testing.T) {
	for _, test := range []struct {
		config mongotest.Config
		field  string
	}{
		{mongotest.Config{Topology: 9}, "Topology is 9"},
		{mongotest.Config{Nodes: -1}, "Nodes is -1"},
		{mongotest.Config{Nodes: 51}, "Nodes is 51"},
		{mongotest.Config{Topology: mongotest.Standalone, Nodes: 2}, "Nodes is 2"},
		{mongotest.Config{MaxBytes: -1}, "MaxBytes is -1"},
		{mongotest.Config{Parameters: bson.D{{Key: "x", Value: 1}}}, "Parameters"},
	} {
		if _, err := mongotest.New(test.config); err == nil || !strings.Contains(err.Error(), test.field) {
			t.Errorf("got %v, want an error with %q", err, test.field)
		}
	}
}
