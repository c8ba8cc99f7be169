package suite_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed90641741/spillway/spillmongo"
)

// runnerOperation is one that no entity does.
func (u *unified) runnerOperation(name string, a arguments) error {
	switch name {
	case "createEntities":
		for _, e := range a.list("entities") {
			var d bson.D
			if err := bson.Unmarshal(e.(bson.Raw), &d); err != nil {
				return err
			}
			u.create(d)
		}
		return nil
	case "failPoint":
		client := u.entities[a.text("client")].(*mongo.Client)
		return client.Database("admin").RunCommand(u.ctx, a.doc("failPoint")).Err()
	case "targetedFailPoint":
		a.get("session")
		for _, n := range u.d.Nodes() {
			must(n.RunCommand("admin", a.doc("failPoint")))
		}
		return nil
	case "runOnThread":
		op := new(operation)
		if err := bson.Unmarshal(a.doc("operation"), op); err != nil {
			return err
		}
		u.entities[a.text("thread")].(*thread).steps <- op
		return nil
	case "waitForThread":
		return u.entities[a.text("thread")].(*thread).wait()
	case "wait":
		v, _ := a.get("ms")
		<-time.After(time.Duration(v.AsInt64()) * time.Millisecond)
		return nil
	default:
		return u.assertion(name, a)
	}
}

// assertion is an operation that looks at what has happened.
func (u *unified) assertion(name string, a arguments) error {
	switch name {
	case "waitForEvent", "assertEventCount":
		want, count := must(a.doc("event").Elements())[0], a.number("count")
		client := u.clients[a.text("client")]
		for range 1000 { // ten seconds of the bubble's time
			if n := u.matching(client, want); n == count || n > count && name == "waitForEvent" {
				return nil
			}
			if name == "assertEventCount" {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		u.t.Errorf("%s: %d of %s, want %d", name, u.matching(client, want), want.Key(), count)
	case "assertNumberConnectionsCheckedOut":
		client := u.clients[a.text("client")]
		client.mu.Lock()
		defer client.mu.Unlock()
		if want := a.number("connections"); client.out != want {
			u.t.Errorf("%d connections are checked out, want %d", client.out, want)
		}
	case "assertSameLsidOnLastTwoCommands", "assertDifferentLsidOnLastTwoCommands":
		if one, other := u.clients[a.text("client")].lastSessions(); (one == other) != strings.Contains(name, "Same") {
			u.t.Errorf("%s: %s and %s", name, one, other)
		}
	case "assertSessionTransactionState":
		s, want := u.entities[a.text("session")].(*mongo.Session), a.text("state")
		if running := want == "starting" || want == "in_progress"; s.TransactionRunning() != running {
			u.t.Errorf("a transaction runs: %v, want %s", s.TransactionRunning(), want)
		}
	case "assertSessionDirty", "assertSessionNotDirty":
		s := u.entities[a.text("session")].(*mongo.Session)
		if dirty := u.dirty(s); dirty != (name == "assertSessionDirty") {
			u.t.Errorf("%s: it is dirty: %v", name, dirty)
		}
	case "assertSessionPinned", "assertSessionUnpinned":
		s := u.entities[a.text("session")].(*mongo.Session)
		if pinned := isPinned(s); pinned != (name == "assertSessionPinned") {
			u.t.Errorf("%s: it is pinned: %v", name, pinned)
		}
	case "assertCollectionExists", "assertCollectionNotExists":
		names, err := u.plain().Database(a.text("databaseName")).ListCollectionNames(u.ctx, bson.D{{Key: "name", Value: a.text("collectionName")}})
		if exists := len(names) == 1; err != nil || exists != (name == "assertCollectionExists") {
			u.t.Errorf("%s: %v, %v", name, names, err)
		}
	case "assertIndexExists", "assertIndexNotExists":
		specs, err := u.plain().Database(a.text("databaseName")).Collection(a.text("collectionName")).Indexes().ListSpecifications(u.ctx)
		index := a.text("indexName")
		exists := slices.ContainsFunc(specs, func(s mongo.IndexSpecification) bool { return s.Name == index })
		if exists != (name == "assertIndexExists") {
			u.t.Errorf("%s of %s: %v", name, index, err)
		}
	default:
		return u.topologyOperation(name, a)
	}
	return nil
}

// topologyOperation is one that looks at what a client knows of its servers.
func (u *unified) topologyOperation(name string, a arguments) error {
	switch name {
	case "recordTopologyDescription":
		client := u.clients[a.text("client")]
		client.mu.Lock()
		defer client.mu.Unlock()
		u.entities[a.text("id")] = client.topology
	case "assertTopologyType":
		if got := u.entities[a.text("topologyDescription")].(event.TopologyDescription).Kind; got != a.text("topologyType") {
			u.t.Errorf("the topology is %s, want %s", got, a.text("topologyType"))
		}
	case "waitForPrimaryChange":
		client, prior := u.clients[a.text("client")], u.entities[a.text("priorTopologyDescription")].(event.TopologyDescription)
		for range max(1, a.number("timeoutMS")/10) {
			client.mu.Lock()
			now := primary(client.topology)
			client.mu.Unlock()
			if now != "" && now != primary(prior) {
				return nil
			}
			time.Sleep(10 * time.Millisecond)
		}
		u.t.Errorf("the primary is still %q", primary(prior))
	default:
		return unsupported(name)
	}
	return nil
}

func primary(t event.TopologyDescription) string {
	for _, s := range t.Servers {
		if s.Kind == "RSPrimary" {
			return string(s.Addr)
		}
	}
	return ""
}

// dirty reports whether a session is to be discarded, as the driver or the policy has
// it.
func (u *unified) dirty(s *mongo.Session) bool {
	for _, c := range u.clients {
		if _, id, ok := s.ID().Lookup("id").BinaryOK(); ok && replaces(c.retrier, [16]byte(id)) {
			return true
		}
	}
	return clientSession(s).FieldByName("Server").Elem().FieldByName("Dirty").Bool()
}

// replaces reports whether the next new use of a session gets another ID, which is no public
// state of a Retrier.
func replaces(r *spillmongo.Retrier, session [16]byte) bool {
	all := reflect.ValueOf(r).Elem().FieldByName("sessions").FieldByName("all")
	state := all.MapIndex(reflect.ValueOf(session).Convert(all.Type().Key()))
	return state.IsValid() && state.Elem().FieldByName("dirty").Bool()
}

// clientSession is the driver's part of a session, which is not public.
func clientSession(s *mongo.Session) reflect.Value {
	return reflect.ValueOf(s).Elem().FieldByName("clientSession").Elem()
}

func isPinned(s *mongo.Session) bool {
	c := clientSession(s)
	return !c.FieldByName("PinnedServerAddr").IsNil() || !c.FieldByName("PinnedConnection").IsNil()
}

// A thread runs operations one after another.
type thread struct {
	steps chan *operation
	done  chan struct{}
}

func (u *unified) thread() *thread {
	th := &thread{make(chan *operation, 100), make(chan struct{})}
	go func() {
		defer close(th.done)
		for op := range th.steps {
			u.operate(op)
		}
	}()
	return th
}

// wait lets the thread end. No more can be given to it.
func (th *thread) wait() error {
	close(th.steps)
	select {
	case <-th.done:
		return nil
	case <-time.After(10 * time.Second):
		return errors.New("the thread has not ended in 10 s")
	}
}

func (a arguments) number(key string) int {
	v, _ := a.get(key)
	n, _ := v.AsInt64OK()
	return int(n)
}

// matching returns how many of a client's events are like want.
func (u *unified) matching(c *unifiedClient, want bson.RawElement) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, got := range slices.Concat(c.command, c.pool, c.servers) {
		if u.matchEvent(bson.E{Key: want.Key(), Value: want.Value()}, got) == "" {
			n++
		}
	}
	return n
}

// lastSessions returns the ids of the sessions of the last two commands.
func (c *unifiedClient) lastSessions() (one, other string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.command {
		if s, ok := e.(*event.CommandStartedEvent); ok {
			one, other = other, s.Command.Lookup("lsid").String()
		}
	}
	return one, other
}

// watch makes c record the events of connections and servers.
func (c *unifiedClient) watch(o *options.ClientOptions, observe []string) {
	observed := func(e any) bool {
		return slices.ContainsFunc(observe, func(s string) bool { return strings.EqualFold(s, eventName(e)) })
	}
	o.SetPoolMonitor(&event.PoolMonitor{Event: func(e *event.PoolEvent) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.out += map[string]int{event.ConnectionCheckedOut: 1, event.ConnectionCheckedIn: -1}[e.Type]
		if observed(e) {
			c.pool = append(c.pool, e)
		}
	}})
	server := func(e any) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if changed, ok := e.(*event.TopologyDescriptionChangedEvent); ok {
			c.topology = changed.NewDescription
		}
		if observed(e) {
			c.servers = append(c.servers, e)
		}
	}
	o.SetServerMonitor(&event.ServerMonitor{
		ServerDescriptionChanged:   func(e *event.ServerDescriptionChangedEvent) { server(e) },
		ServerOpening:              func(e *event.ServerOpeningEvent) { server(e) },
		ServerClosed:               func(e *event.ServerClosedEvent) { server(e) },
		TopologyDescriptionChanged: func(e *event.TopologyDescriptionChangedEvent) { server(e) },
		TopologyOpening:            func(e *event.TopologyOpeningEvent) { server(e) },
		TopologyClosed:             func(e *event.TopologyClosedEvent) { server(e) },
		ServerHeartbeatStarted:     func(e *event.ServerHeartbeatStartedEvent) { server(e) },
		ServerHeartbeatSucceeded:   func(e *event.ServerHeartbeatSucceededEvent) { server(e) },
		ServerHeartbeatFailed:      func(e *event.ServerHeartbeatFailedEvent) { server(e) },
	})
}
