package mongoproxy

import (
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/internal/admin/accounts"
	"github.com/seed90641741/spillway/internal/admin/decisions"
	"github.com/seed90641741/spillway/internal/mongowire"
)

// oneAnHour lets one command in, and as many wait as depth says.
func oneAnHour(depth int) func(*config.Mongo) {
	return func(m *config.Mongo) {
		m.Parameters = config.MongoParameters{RequestEnabled: true, RequestRate: 1.0 / 3600, RequestBurst: 3600, RequestDepth: depth}
	}
}

// booked waits until each command has ended, and checks that one of them is in an account.
func (f *front) booked(offered uint64, a accounts.Account, r accounts.Reason) {
	f.tb.Helper()
	eventually(f.tb, "in an account", func() bool {
		t := f.book.Read()
		return t.Offered == offered && t.Sum() == offered
	})
	t := f.book.Read()
	if t.Of(a) != 1 || a == accounts.Rejected && t.Rejected[r] != 1 {
		f.tb.Errorf("accounts: %+v, want one %v %v", t, a, r)
	}
}

// TestInterruptedCommands: a command whose connection ends before its answer is in one account,
// too: by who ended it, and by whether it was sent.
func TestInterruptedCommands(t *testing.T) {
	half := func(h mongowire.Header, rest []byte) [][]byte { // of an answer, then the end
		if h.RequestID < 5 {
			return fine(h, rest)
		}
		long := doc(func(b *mongowire.Builder) { b.Double("ok", 1); b.Text("x", string(make([]byte, 200<<10))) })
		return [][]byte{mongowire.AppendMsg(nil, 1, h.RequestID, 0, long)[:100<<10]}
	}
	stays := func(h mongowire.Header, rest []byte) [][]byte { // without an answer
		if h.RequestID < 5 {
			return fine(h, rest)
		}
		return [][]byte{}
	}
	for _, test := range []struct {
		name    string
		server  func(mongowire.Header, []byte) [][]byte // nil: there is none
		change  func(*config.Mongo)
		play    func(f *front, s *server)
		offered uint64
		account accounts.Account
		reason  accounts.Reason
	}{
		{"no server", nil, nil, func(f *front, _ *server) {
			p := f.dial()
			p.send(msg(5, 0, ping)) // as the first message
			p.ended()
		}, 1, accounts.Failed, 0},
		{"the client leaves a queue", fine, oneAnHour(1), func(f *front, _ *server) {
			p := f.dial()
			p.ask(hello(true))
			p.ask(msg(5, 0, ping))
			p.send(msg(6, 0, ping))
			eventually(f.tb, "waiting", func() bool { return f.stats().Gate.RateLimit.Waiting == 1 })
			_ = p.Close()
		}, 2, accounts.GoneWaiting, 0},
		{"the listener ends while a command waits", fine, oneAnHour(1), func(f *front, _ *server) {
			p := f.dial()
			p.ask(hello(true))
			p.ask(msg(5, 0, ping))
			p.send(msg(6, 0, ping))
			eventually(f.tb, "waiting", func() bool { return f.stats().Gate.RateLimit.Waiting == 1 })
			_ = f.drain() // which says that it was cut off
		}, 2, accounts.Rejected, accounts.Draining},
		{"the client leaves after it was sent", stays, nil, func(f *front, _ *server) {
			p := f.dial()
			p.ask(hello(true))
			p.send(msg(5, 0, ping))
			eventually(f.tb, "sent", func() bool { return f.stats().Endpoints[0].Busy == 1 })
			_ = p.Close()
		}, 1, accounts.GoneSent, 0},
		{"the server hangs up", stays, nil, func(f *front, s *server) {
			p := f.dial()
			p.ask(hello(true))
			p.send(msg(5, 0, ping))
			eventually(f.tb, "sent", func() bool { return f.stats().Endpoints[0].Busy == 1 })
			s.hangUp()
			p.ended()
		}, 1, accounts.Failed, 0},
		{"the server hangs up in an answer", half, nil, func(f *front, s *server) {
			p := f.dial()
			p.ask(hello(true))
			p.send(msg(5, 0, ping))
			if _, err := p.src.ReadByte(); err != nil {
				f.tb.Error(err)
			}
			s.hangUp()
		}, 1, accounts.Failed, 0},
		{"too many before authentication", fine, func(m *config.Mongo) { m.Authentication = true }, func(f *front, _ *server) {
			p := f.dial()
			p.ask(hello(true))
			for i := range maxUnprovenCommands {
				p.ask(msg(int32(5+i), 0, ping))
			}
			p.send(msg(99, 0, ping))
			p.ended()
		}, maxUnprovenCommands + 1, accounts.Rejected, accounts.BadRequest},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel() // some wait for the watch
			var f *front
			var s *server
			if test.server != nil {
				s = newServer(t, test.server)
				f = newFront(t, test.change, s)
			} else {
				f = newFront(t, func(m *config.Mongo) { m.Endpoints = []string{"127.0.0.1:1"} }) // refuses connections
			}
			test.play(f, s)
			f.booked(test.offered, test.account, test.reason)
		})
	}
}

// TestHelloIsNotCounted: monitors say hello for ever, and are no load.
func TestHelloIsNotCounted(t *testing.T) {
	f := newFront(t, nil, newServer(t, fine))
	p := f.dial()
	p.ask(hello(true))
	p.ask(hello(true))
	p.ask(msg(5, 0, ping))
	f.booked(1, accounts.Served, 0)
	if n := f.stats().Commands; n != 3 {
		t.Errorf("%d commands, want 3", n)
	}
}

// TestDecisionsOfCommands: the log of decisions says whose command was rejected, and which.
func TestDecisionsOfCommands(t *testing.T) {
	log := decisions.New(nil)
	f := newObserved(t, log, func(m *config.Mongo) {
		oneAnHour(0)(m)
		m.Retry.Mode = "off"
		m.Classes = []config.MongoClass{{Customer: "database"}}
	}, newServer(t, fine))
	p := f.dial()
	p.ask(hello(true))
	p.ask(msg(5, 0, ping))
	if isOK(p.ask(msg(6, 0, commanding("find", nil)))) {
		t.Error("the second command was let in")
	}
	all, _ := log.Read(new(decisions.Filter), 10)
	if len(all) != 1 {
		t.Fatalf("%d decisions, want 1", len(all))
	}
	d := all[0]
	if d.Listener != "m" || d.Cluster != "m" || d.Route != "" || d.Path != "/test/find" || d.Customer != "test" || d.Caller != "127.0.0.1" || d.Policy != "ratelimit" {
		t.Errorf("%+v", d)
	}
}

// TestEndpointLevels: an endpoint is down while it cannot be connected to.
func TestEndpointLevels(t *testing.T) {
	const address = "127.0.0.1:1" // not a free port, which a listener may get
	f := newFront(t, func(m *config.Mongo) { m.Endpoints = append(m.Endpoints, address) }, newServer(t, fine))
	f.dial().ask(hello(true))
	f.dial().ask(msg(5, 0, ping))
	e := f.stats().Endpoints
	if len(e) != 2 || e[0].Total != 1 || e[0].Answers != 1 || e[0].Errors != 0 || e[0].Took <= 0 || e[0].Took > time.Minute || e[0].Busy != 0 || e[0].Failed {
		t.Errorf("%+v", e)
	}
	if b := f.stats().Budget; b.Capacity <= 0 || b.Tokens <= 0 {
		t.Errorf("the retry budget: %+v", b)
	}
	f.config.Mongo[0].Endpoints = []string{address}
	f.put()
	p := f.dial()
	p.send(hello(true))
	p.ended()
	if e := f.stats().Endpoints; len(e) != 1 || !e[0].Failed || e[0].Trouble != "connection refused" {
		t.Errorf("%+v", e)
	}
}
