package mongoproxy

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/internal/mongowire"
)

// TestTune makes a server slow, and fast again, and checks that the rate of the request
// limiter follows, also across a change of other settings.
func TestTune(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	var slow atomic.Bool
	server := newServer(t, func(h mongowire.Header, rest []byte) [][]byte {
		if slow.Load() {
			<-time.After(40 * time.Millisecond)
		}
		return fine(h, rest)
	})
	f := newFront(t, func(m *config.Mongo) {
		m.Parameters.RequestEnabled, m.Parameters.RequestRate = true, 100
		m.RequestMode = "enforce"
		m.Tune = &config.Tune{Mode: "enforce", Latency: 20 * time.Millisecond, Reaction: 100 * time.Millisecond}
	}, server)
	p := f.dial()
	until := func(what string, is func(limit float64) bool) {
		t.Helper()
		eventually(t, what, func() bool {
			for i := range int32(20) {
				p.ask(msg(i, 0, ping))
			}
			return is(f.stats().Tuner.Limit)
		})
	}
	slow.Store(true)
	until("a limit of 30 at most", func(l float64) bool { return l <= 30 })
	low := f.stats().Tuner.Limit
	f.config.Mongo[0].MaxConnections = 77
	f.put()
	if s := f.stats().Tuner; s.Limit > 1.5*low {
		t.Errorf("after another configuration the limit is %v, was %v", s.Limit, low)
	}
	slow.Store(false)
	until("a limit of 60 at least", func(l float64) bool { return l >= 60 })
	for _, m := range f.stats().Tuner.Moves {
		if m.Reason() == "" || !m.Applied {
			t.Errorf("a move: %+v", m)
		}
	}
	f.config.Mongo[0].Tune = nil
	f.put()
	if f.stats().Tuner != nil {
		t.Error("a tuner without a configuration")
	}
}

// TestTuneReads: a tuner measures the latency of commands that the servers answered and of
// those in flight, also of exempt clients, but not of rejected commands.
func TestTuneReads(t *testing.T) {
	asked, proceed := make(chan struct{}), make(chan struct{})
	s := newServer(t, func(h mongowire.Header, rest []byte) [][]byte {
		if h.RequestID == 50 {
			close(asked)
			<-proceed
		}
		return fine(h, rest)
	})
	f := newFront(t, func(m *config.Mongo) {
		m.Parameters = config.MongoParameters{RequestEnabled: true, RequestRate: 100, RequestApplications: []string{"exempt"}}
		m.Quota = &config.Quota{DefaultLimit: config.Limit{Rate: 1.0 / 1800}, BurstSeconds: 3600}
		m.Tune = &config.Tune{Mode: "enforce", Latency: 20 * time.Millisecond, Reaction: time.Hour} // by hand, below
	}, s)
	p := f.dial()
	p.ask(hello(true))
	p.ask(msg(2, 0, ping))
	f.config.Mongo[0].Tune.Latency = 30 * time.Millisecond
	f.put() // another tuner
	var l *listener
	for _, l = range f.listeners {
		break
	}
	x, now, values := l.tuning.Load(), time.Now(), []float64{0}
	x.Read(now, values)
	if x.Read(now.Add(time.Minute), values); values[0] != 0 {
		t.Errorf("at rest the latency is %v ms", values[0])
	}
	q := f.dial()
	q.ask(helloOf("exempt"))
	q.send(msg(50, 0, ping))
	<-asked
	if x.Read(now.Add(2*time.Minute), values); values[0] < 60_000 {
		t.Errorf("while a command hangs for a minute the latency is %v ms", values[0])
	}
	close(proceed)
	q.receive()
	ended := x.meter.Ended()
	if isOK(p.ask(msg(4, 0, ping))) {
		t.Fatal("the quota is not there")
	}
	if n := x.meter.Ended(); n != ended {
		t.Errorf("the tuner heard of %d commands that no server has seen", n-ended)
	}
}

// helloOf is the hello of an application.
func helloOf(name string) []byte {
	var application, client mongowire.Builder
	application.Text("name", name)
	client.Value("application", mongowire.Value{Kind: mongowire.KindDocument, Data: application.Document()})
	return msg(3, 0, doc(func(b *mongowire.Builder) {
		b.Int("hello", 1)
		b.Value("client", mongowire.Value{Kind: mongowire.KindDocument, Data: client.Document()})
		b.Bool("backpressure", true)
		b.Text("$db", "admin")
	}))
}

// TestTuneIgnoresTheExempt: a client that needs no token does not use the limit.
func TestTuneIgnoresTheExempt(t *testing.T) {
	f := newFront(t, func(m *config.Mongo) {
		m.Parameters = config.MongoParameters{RequestEnabled: true, RequestRate: 100, RequestApplications: []string{"exempt"}}
		m.Tune = &config.Tune{Mode: "enforce", Latency: 20 * time.Millisecond, Reaction: time.Hour} // by hand, below
	}, newServer(t, fine))
	var l *listener
	for _, l = range f.listeners {
		break
	}
	x, now, values := l.tuning.Load(), time.Now(), []float64{0}
	x.Read(now, values)
	p, q := f.dial(), f.dial()
	p.ask(helloOf("exempt"))
	q.ask(helloOf("web"))
	for _, of := range []struct{ exempt, limited int }{{30, 0}, {30, 10}, {0, 20}} {
		for i := range of.exempt {
			p.ask(msg(int32(i), 0, ping))
		}
		for i := range of.limited {
			q.ask(msg(int32(i), 0, ping))
		}
		now = now.Add(time.Second)
		if used := x.Read(now, values); used != float64(of.limited) {
			t.Errorf("%+v: %v are used", of, used)
		}
	}
}
