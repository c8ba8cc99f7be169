package mongoproxy

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/mongoproxy/wire"
	"github.com/seed90641741/spillway/internal/mongowire"
)

// A moody server is overloaded for a number of commands, hello not included, and records the
// commands.
type moody struct {
	*server

	left   atomic.Int64
	answer func(mongowire.Header) [][]byte // while it is overloaded
	got    chan []byte
}

func newMoody(t testing.TB, n int64) *moody {
	m := &moody{answer: overload, got: make(chan []byte, 1000)}
	m.left.Store(n)
	m.server = newServer(t, func(h mongowire.Header, rest []byte) [][]byte {
		if bytes.Contains(rest, []byte("hello")) {
			return fine(h, rest)
		}
		m.got <- bytes.Clone(rest)
		if m.left.Add(-1) >= 0 {
			return m.answer(h)
		}
		return fine(h, rest)
	})
	return m
}

// commanding is a command with fields.
func commanding(name string, fill func(*mongowire.Builder)) []byte {
	return doc(func(b *mongowire.Builder) {
		b.Text(name, "c")
		if fill != nil {
			fill(b)
		}
		b.Text("$db", "test")
	})
}

// TestRetries checks which commands are retried, and how often.
func TestRetries(t *testing.T) {
	labelled := func(labels ...string) func(mongowire.Header) [][]byte {
		return func(h mongowire.Header) [][]byte {
			return [][]byte{mongowire.AppendMsg(nil, 1, h.RequestID, 0, doc(func(b *mongowire.Builder) {
				b.Double("ok", 0)
				b.Int("code", 462)
				b.Array("errorLabels", labels...)
			}))}
		}
	}
	zero := doc(func(b *mongowire.Builder) { b.Int("w", 0) })
	for _, test := range []struct {
		name     string
		times    int64 // that the server is overloaded
		change   func(*config.Mongo)
		aware    bool // the driver has backpressure
		answer   func(mongowire.Header) [][]byte
		message  []byte
		attempts int
		ok       bool
	}{
		{name: "until it works", times: 2, attempts: 3, ok: true},
		{name: "no more than five times", times: 99, attempts: 6},
		{name: "as often as was said", times: 99, change: func(m *config.Mongo) { m.Retry.MaxRetries = 1 }, attempts: 2},
		{name: "twice, by the later revision", times: 99, change: func(m *config.Mongo) { m.Retry.Revision = "2026-07" }, attempts: 3},
		{name: "never", times: 99, change: func(m *config.Mongo) { m.Retry.Mode = "off" }, attempts: 1},
		{name: "observed", times: 99, change: func(m *config.Mongo) { m.Retry.Mode = "observe" }, attempts: 1},
		{name: "not on top of the driver", times: 1, aware: true, attempts: 1},
		{name: "on top of the driver if told", times: 1, aware: true, change: func(m *config.Mongo) { m.Retry.Always = true }, attempts: 2, ok: true},
		{name: "not without RetryableError", times: 1, answer: labelled(labelOverloaded), attempts: 1},
		{name: "not without SystemOverloadedError", times: 1, answer: labelled(labelRetryable), attempts: 1},
		{name: "no reads", times: 1, change: func(m *config.Mongo) { m.Retry.NoReads = true }, message: commanding("find", nil), attempts: 1},
		{name: "no writes", times: 1, change: func(m *config.Mongo) { m.Retry.NoWrites = true }, message: commanding("insert", nil), attempts: 1},
		{name: "getMore", times: 1, message: commanding("getMore", nil), attempts: 2, ok: true},
		{name: "in a transaction", times: 1, message: commanding("insert", func(b *mongowire.Builder) { b.Bool("autocommit", false) }), attempts: 2, ok: true},
		{name: "not with a write concern of 0", times: 1, message: commanding("insert", func(b *mongowire.Builder) {
			b.Value("writeConcern", mongowire.Value{Kind: mongowire.KindDocument, Data: zero})
		}), attempts: 1},
		{name: "not past maxTimeMS", times: 99, answer: func(h mongowire.Header) [][]byte {
			<-time.After(5 * time.Millisecond) // whatever the backoff
			return overload(h)
		}, message: commanding("find", func(b *mongowire.Builder) { b.Int("maxTimeMS", 1) }), attempts: 1},
		{name: "not what is too long", times: 1, message: commanding("insert", func(b *mongowire.Builder) {
			b.Text("x", string(make([]byte, 70<<10)))
		}), attempts: 1},
		{name: "what is rather long", times: 1, message: commanding("insert", func(b *mongowire.Builder) {
			b.Text("x", string(make([]byte, 40<<10)))
		}), attempts: 2, ok: true},
		{name: "for a token", times: 1, change: func(m *config.Mongo) { m.Retry.Budget = 0.5 }, attempts: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel() // backoffs add up
			s := newMoody(t, test.times)
			if test.answer != nil {
				s.answer = test.answer
			}
			f := newFront(t, test.change, s.server)
			p := f.dial()
			p.ask(hello(test.aware))
			message := test.message
			if message == nil {
				message = ping
			}
			got := p.ask(msg(5, 0, message))
			if isOK(got) != test.ok || len(s.got) != test.attempts {
				t.Errorf("ok is %v after %d attempts, want %v after %d", isOK(got), len(s.got), test.ok, test.attempts)
			}
			want := append(append(u32(0), 0), message...)
			for range len(s.got) {
				if rest := <-s.got; !bytes.Equal(rest, want) {
					t.Error("something else was sent again")
				}
			}
			st := f.stats()
			if st.Retries != uint64(test.attempts-1) || st.Rescued != min(1, st.Retries) && test.ok {
				t.Errorf("%d retries, %d rescued", st.Retries, st.Rescued)
			}
		})
	}
}

// TestCompressedRetries: a compressed command is retried only if everything that could forbid
// a retry has been parsed.
func TestCompressedRetries(t *testing.T) {
	long := func(b *mongowire.Builder) { b.Text("x", string(make([]byte, 20<<10))) }
	zero := doc(func(b *mongowire.Builder) { b.Int("w", 0) })
	for name, test := range map[string]struct {
		fill func(*mongowire.Builder)
		ok   bool
	}{
		"all is known": {func(b *mongowire.Builder) { b.Bool("ordered", true) }, true},
		"maxTimeMS cannot be seen": {func(b *mongowire.Builder) {
			long(b)
			b.Int("maxTimeMS", 1)
		}, false},
		"a write concern of 0 cannot be seen": {func(b *mongowire.Builder) {
			long(b)
			b.Value("writeConcern", mongowire.Value{Kind: mongowire.KindDocument, Data: zero})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // backoffs add up
			s := newMoody(t, 1)
			p := newFront(t, nil, s.server).dial()
			p.ask(hello(false))
			payload := append(append(u32(0), 0), commanding("insert", test.fill)...)
			got := p.ask(raw(0, mongowire.OpCompressed, u32(mongowire.OpMsg), u32(uint32(len(payload))), []byte{2}, compressed(t, 2, payload)))
			if isOK(got) != test.ok {
				t.Errorf("ok is %v, want %v, after %d attempts", isOK(got), test.ok, len(s.got))
			}
		})
	}
}

// TestAnnouncements checks which drivers count as supporting backpressure.
func TestAnnouncements(t *testing.T) {
	for name, test := range map[string]struct {
		fill func(*mongowire.Builder)
		want bool
	}{
		"nothing":        {func(*mongowire.Builder) {}, false},
		"false":          {func(b *mongowire.Builder) { b.Bool("backpressure", false) }, false},
		"version 0":      {func(b *mongowire.Builder) { b.Int("backpressure", 0) }, false},
		"true":           {func(b *mongowire.Builder) { b.Bool("backpressure", true) }, true},
		"version 2":      {func(b *mongowire.Builder) { b.Int("backpressure", 2) }, true},
		"2 as a string":  {func(b *mongowire.Builder) { b.Text("backpressure", "2") }, true},
		"0 as a double":  {func(b *mongowire.Builder) { b.Double("backpressure", 0) }, false},
		"something else": {func(b *mongowire.Builder) { b.Array("backpressure", "x") }, true},
	} {
		if got := wire.NewHandshake(doc(test.fill)).Backpressure; got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// TestMaxTimeShrinks: a retry has the rest of the client's maxTimeMS.
func TestMaxTimeShrinks(t *testing.T) {
	for _, flags := range []uint32{0, mongowire.ChecksumPresent} {
		for kind, number := range map[string]func(*mongowire.Builder){
			"int":    func(b *mongowire.Builder) { b.Int("maxTimeMS", 60_000) },
			"double": func(b *mongowire.Builder) { b.Double("maxTimeMS", 60_000) },
			"long": func(b *mongowire.Builder) {
				b.Value("maxTimeMS", mongowire.Value{Kind: mongowire.KindInt64, Data: append(u32(60_000), u32(0)...)})
			},
		} {
			t.Run(fmt.Sprint(kind, flags), func(t *testing.T) {
				t.Parallel() // backoffs add up
				maxTimeShrinks(t, flags, number)
			})
		}
	}
}

func maxTimeShrinks(t *testing.T, flags uint32, number func(*mongowire.Builder)) {
	t.Helper()
	s := newMoody(t, 3)
	f := newFront(t, nil, s.server)
	p := f.dial()
	p.ask(hello(false))
	if !isOK(p.ask(msg(5, flags, commanding("find", number)))) {
		t.Fatal("it did not work")
	}
	last := 60_000.0
	for range 4 { // a backoff may be shorter than a millisecond, but not all three
		rest := <-s.got
		left, _ := mongowire.Lookup(rest[5:], "maxTimeMS").Number()
		if left > last || left < 50_000 {
			t.Errorf("maxTimeMS is %v, after %v", left, last)
		}
		last = left
		if flags != 0 {
			whole := append(mongowire.Header{Length: int32(16 + len(rest)), RequestID: 5, OpCode: mongowire.OpMsg}.Append(nil), rest...)
			end := len(whole) - 4
			if !bytes.Equal(whole[end:], u32(mongowire.Checksum(whole[:end]))) {
				t.Error("the checksum is that of another message")
			}
		}
	}
	if last == 60_000 {
		t.Error("maxTimeMS does not shrink")
	}
}

// TestOwnRejectionsAreRetried: for a driver that does not back off, the proxy does so
// before its own gate.
func TestOwnRejectionsAreRetried(t *testing.T) {
	limited := func(m *config.Mongo) {
		m.Parameters = config.MongoParameters{RequestEnabled: true, RequestRate: 20, RequestBurst: 0.05}
	}
	for _, test := range []struct {
		aware  bool
		change func(*config.Mongo)
		ok     bool
	}{
		{false, limited, true},
		{true, limited, false},
		{false, func(m *config.Mongo) {
			limited(m)
			no := false
			m.Parameters.AllowRetries = &no
		}, false},
	} {
		f := newFront(t, test.change, newServer(t, fine))
		p := f.dial()
		p.ask(hello(test.aware))
		ok := true
		for i := range int32(4) {
			ok = isOK(p.ask(msg(i, 0, ping))) && ok
		}
		if ok != test.ok {
			t.Errorf("aware %v: ok is %v", test.aware, ok)
		}
	}
}

// TestUnanswered: a command that expects no answer is forwarded or discarded, and never
// answered or retried.
func TestUnanswered(t *testing.T) {
	s := newMoody(t, 0)
	f := newFront(t, func(m *config.Mongo) {
		m.Parameters = config.MongoParameters{RequestEnabled: true, RequestRate: 1.0 / 3600, RequestBurst: 2 * 3600}
	}, s.server)
	p := f.dial()
	p.ask(hello(true))
	payload := append(append(u32(mongowire.MoreToCome), 0), ping...)
	for _, by := range []byte{mongowire.CompressorNone, mongowire.CompressorZlib, mongowire.CompressorZstd} {
		p.send(raw(0, mongowire.OpCompressed, u32(mongowire.OpMsg), u32(uint32(len(payload))), []byte{by}, compressed(t, by, payload)))
	}
	if got := p.ask(msg(9, 0, ping)); isOK(got) || labels(got) != labelOverloaded+" "+labelRetryable {
		t.Errorf("got %x", got)
	}
	if st := f.stats(); st.Dropped != 1 || st.Gate.RateLimit.AdmittedTotal != 2 {
		t.Errorf("%d dropped, %d admitted, want 1 and 2", st.Dropped, st.Gate.RateLimit.AdmittedTotal)
	}
}

// TestClientsThatLeave: a client that leaves during a backoff ends it.
func TestClientsThatLeave(t *testing.T) {
	t.Parallel() // it waits for the watch
	s := newMoody(t, 1<<30)
	f := newFront(t, func(m *config.Mongo) { m.Retry.MaxRetries = 100 }, s.server)
	p := f.dial()
	p.ask(hello(false))
	p.send(msg(5, 0, ping))
	<-s.got
	began := time.Now()
	_ = p.Close()
	f.closed(Left)
	t.Log("noticed after", time.Since(began))
	eventually(t, "gone", func() bool { return s.count() == 0 })
}
