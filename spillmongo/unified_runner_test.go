package spillmongo_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
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
	default:
		return unsupported(name)
	}
	return nil
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

// watch has c see what becomes of connections and servers.
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
	o.SetServerMonitor(&event.ServerMonitor{ServerDescriptionChanged: func(e *event.ServerDescriptionChangedEvent) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if observed(e) {
			c.servers = append(c.servers, e)
		}
	}})
}

// collectionOptions reads those of an entity.
func collectionOptions(doc bson.Raw) (*options.CollectionOptionsBuilder, error) {
	o := options.Collection()
	if len(doc) == 0 {
		return o, nil
	}
	for _, e := range must(doc.Elements()) {
		switch e.Key() {
		case "readConcern":
			level, _ := e.Value().Document().Lookup("level").StringValueOK()
			o.SetReadConcern(&readconcern.ReadConcern{Level: level})
		case "writeConcern":
			o.SetWriteConcern(concern(e.Value().Document()))
		case "readPreference":
			mode, _ := e.Value().Document().Lookup("mode").StringValueOK()
			m, err := readpref.ModeFromString(mode)
			if err != nil {
				return nil, err
			}
			o.SetReadPreference(must(readpref.New(m)))
		default:
			return nil, fmt.Errorf("%s in collectionOptions", e.Key())
		}
	}
	return o, nil
}
