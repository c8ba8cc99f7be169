package mongoproxy

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/internal/admin/accounts"
	"github.com/seed90641741/spillway/internal/mongowire"
	"github.com/seed90641741/spillway/retry"
)

// ends is an observer that keeps the outcomes of commands.
type ends struct {
	mu  sync.Mutex
	all []spillway.Event
}

func (e *ends) Observe(x spillway.Event) {
	if x.Policy == "retry" {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.all = append(e.all, x)
	}
}

func (e *ends) list() []spillway.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.all
}

// failing answers that a command has failed with a code, 0 for none.
func failing(code int32) func(mongowire.Header) [][]byte {
	return func(h mongowire.Header) [][]byte {
		return [][]byte{mongowire.AppendMsg(nil, 1, h.RequestID, 0, doc(func(b *mongowire.Builder) {
			b.Double("ok", 0)
			if code != 0 {
				b.Int("code", code)
			}
		}))}
	}
}

// TestEnds: the outcome of each command that passes through the gates is reported exactly
// once.
func TestEnds(t *testing.T) {
	limited := func(m *config.Mongo) {
		m.Parameters = config.MongoParameters{RequestEnabled: true, RequestRate: 1.0 / 3600, RequestBurst: 3600}
	}
	waiting := commanding("getMore", func(b *mongowire.Builder) { b.Int("maxTimeMS", 1000) })
	for _, test := range []struct {
		name     string
		times    int64 // that the server answers otherwise
		answer   func(mongowire.Header) [][]byte
		change   func(*config.Mongo)
		aware    bool // the driver has backpressure
		message  []byte
		flags    uint32
		ask      int // how often; 0 is once
		outcome  spillway.Outcome
		attempts int16 // after the first
		rejected bool  // here
		timeless bool
		admitted uint64
		account  accounts.Account
	}{
		{name: "served", outcome: spillway.OutcomeServed, admitted: 1},
		{name: "an error of its own", times: 1, answer: failing(13), outcome: spillway.OutcomeServed, admitted: 1},
		{name: "out of time", times: 1, answer: failing(50), outcome: spillway.OutcomeTimedOut, admitted: 1, account: accounts.Late},
		{name: "a server that ends", times: 1, answer: failing(11600), outcome: spillway.OutcomeFailed, admitted: 1, account: accounts.Failed},
		{name: "an error without a code", times: 1, answer: failing(0), outcome: spillway.OutcomeFailed, admitted: 1, account: accounts.Failed},
		{name: "declined", times: 1, aware: true, outcome: spillway.OutcomeOverloaded, admitted: 1, account: accounts.RejectedUpstream},
		{name: "rescued", times: 2, outcome: spillway.OutcomeServed, attempts: 2, admitted: 1},
		{name: "given up", times: 9, change: func(m *config.Mongo) { m.Retry.MaxRetries = 1 }, outcome: spillway.OutcomeOverloaded, attempts: 1, admitted: 1, account: accounts.RejectedUpstream},
		{name: "rejected", change: limited, aware: true, ask: 2, outcome: spillway.OutcomeNotStarted, rejected: true, admitted: 1, account: accounts.Rejected},
		{name: "rejected again", change: func(m *config.Mongo) {
			limited(m)
			m.Retry.MaxRetries = 1
		}, ask: 2, outcome: spillway.OutcomeNotStarted, attempts: 1, rejected: true, admitted: 2, account: accounts.Rejected},
		{name: "waits for news", message: waiting, outcome: spillway.OutcomeServed, timeless: true, admitted: 1},
		{name: "wants no answer", flags: mongowire.MoreToCome, outcome: spillway.OutcomeServed, timeless: true, admitted: 1},
		{name: "the server hangs up", times: 1, answer: func(mongowire.Header) [][]byte { return nil }, outcome: spillway.OutcomeFailed, admitted: 1, account: accounts.Failed},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel() // backoffs add up
			s := newMoody(t, test.times)
			if test.answer != nil {
				s.answer = test.answer
			}
			var told ends
			f := newObserved(t, &told, test.change, s.server)
			p := f.dial()
			p.ask(hello(test.aware))
			message := test.message
			if message == nil {
				message = ping
			}
			n := max(1, test.ask)
			for i := range n {
				p.send(msg(int32(5+i), test.flags, message))
				if test.flags == 0 {
					_, _, _ = p.try() // it may be the end
				}
			}
			eventually(t, "told", func() bool { return len(told.list()) >= n })
			if err := f.drain(); err != nil {
				t.Error(err)
			}
			all := told.list()
			if len(all) != n {
				t.Fatalf("%d commands have %d ends: %+v", n, len(all), all)
			}
			e := all[n-1]
			if e.Outcome != test.outcome || e.Call.Attempt != test.attempts || errors.Is(e.Err, spillway.ErrRejected) != test.rejected ||
				(e.Latency == 0) != test.timeless || e.Call.Key != "m" || e.Rejected {
				t.Errorf("%+v", e)
			}
			if _, why := errors.AsType[*retry.Error](e.Err); why != (test.name == "given up") {
				t.Errorf("error %v", e.Err)
			}
			if book := f.book.Read(); book.Offered != uint64(n) || book.Sum() != uint64(n) || book.Of(test.account) == 0 ||
				(book.Retried[test.account] > 0) != (test.attempts > 0) {
				t.Errorf("accounts: %+v, want %d, the last %v", book, n, test.account)
			}
			if st := f.stats(); st.Admitted != test.admitted || st.InFlight != 0 || st.Peak > 1 {
				t.Errorf("%d admitted, want %d; %d in flight, %d at most", st.Admitted, test.admitted, st.InFlight, st.Peak)
			}
		})
	}
}

// TestInFlight: commands that the servers work on are in flight; commands that wait for new
// data or for a retry are not.
func TestInFlight(t *testing.T) {
	asked, proceed := make(chan struct{}, 9), make(chan struct{})
	s := newServer(t, func(h mongowire.Header, rest []byte) [][]byte {
		if h.RequestID >= 50 {
			asked <- struct{}{}
			<-proceed
		}
		return fine(h, rest)
	})
	f := newFront(t, nil, s)
	for i, message := range [][]byte{ping, ping, commanding("getMore", func(b *mongowire.Builder) { b.Int("maxTimeMS", 1000) })} {
		p := f.dial()
		p.ask(hello(true))
		p.send(msg(int32(50+i), 0, message))
		<-asked
	}
	if st := f.stats(); st.InFlight != 2 || st.Peak != 2 || st.Admitted != 3 {
		t.Errorf("%d in flight, %d at most, %d admitted, want 2, 2 and 3", st.InFlight, st.Peak, st.Admitted)
	}
	close(proceed)
	eventually(t, "answered", func() bool { return f.stats().InFlight == 0 })
	if st := f.stats(); st.Peak != 0 {
		t.Errorf("%d at most since the last look, want none", st.Peak)
	}
}

// TestLeftAtTheGate: a command whose client disconnected before it was sent has no event, as
// nothing was offered.
func TestLeftAtTheGate(t *testing.T) {
	t.Parallel() // it waits for the watch
	var told ends
	f := newObserved(t, &told, func(m *config.Mongo) {
		m.Parameters = config.MongoParameters{RequestEnabled: true, RequestRate: 1.0 / 3600, RequestBurst: 3600, RequestDepth: 1}
	}, newServer(t, fine))
	p := f.dial()
	p.ask(hello(true))
	p.ask(msg(5, 0, ping))
	p.send(msg(6, 0, ping))
	eventually(t, "waiting", func() bool { return f.stats().Gate.RateLimit.Waiting == 1 })
	_ = p.Close() // what matters is that the proxy notices
	f.closed(Left)
	if all := told.list(); len(all) != 1 || all[0].Time.After(time.Now()) {
		t.Errorf("%+v", all)
	}
	if n := f.stats().Admitted; n != 1 {
		t.Errorf("%d admitted, want 1", n)
	}
}
