package mongoproxy

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/internal/mongowire"
)

// TestDrain: a command in flight completes, idle connections are closed, and an awaited hello
// does not delay the drain.
func TestDrain(t *testing.T) {
	asked, proceed := make(chan struct{}), make(chan struct{})
	s := newServer(t, func(h mongowire.Header, rest []byte) [][]byte {
		switch h.RequestID {
		case 50:
			close(asked)
			<-proceed
		case 51:
			return [][]byte{} // one that waits
		}
		return fine(h, rest)
	})
	f := newFront(t, nil, s)
	idle, busy, waiting := f.dial(), f.dial(), f.dial()
	idle.ask(hello(false))
	busy.ask(hello(false))
	busy.send(msg(50, 0, ping))
	waiting.send(msg(51, 0, doc(func(b *mongowire.Builder) { b.Int("hello", 1); b.Text("$db", "admin") })))
	<-asked
	drained := make(chan error)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		drained <- f.Drain(ctx)
	}()
	idle.ended()
	waiting.ended()
	if _, err := net.Dial("tcp", f.addr); err == nil {
		t.Error("a connection was accepted")
	}
	close(proceed)
	if _, doc := busy.receive(); !isOK(doc) {
		t.Error("a command under way was cut off")
	}
	busy.ended()
	if err := <-drained; err != nil {
		t.Error(err)
	}
}

// newStuck returns a front and a client of it with a command that is never answered.
func newStuck(t *testing.T) (*front, *peer) {
	t.Helper()
	s := newServer(t, func(h mongowire.Header, rest []byte) [][]byte {
		if h.RequestID == 50 {
			return [][]byte{} // never
		}
		return fine(h, rest)
	})
	f := newFront(t, nil, s)
	p := f.dial()
	p.ask(hello(false))
	p.send(msg(50, 0, ping))
	eventually(t, "asked", func() bool { return f.stats().Commands == 2 })
	return f, p
}

// TestDrainCutsOff: commands that do not end in time are cut off.
func TestDrainCutsOff(t *testing.T) {
	f, p := newStuck(t)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if f.Drain(ctx) == nil {
		t.Error("nothing is said of what was cut off")
	}
	p.ended()
}

// TestDrainCutsFormerOff: commands of a removed listener do not delay the end of the proxy
// either, whatever their drain timeout.
func TestDrainCutsFormerOff(t *testing.T) {
	f, p := newStuck(t)
	f.config.DrainTimeout = time.Hour
	f.config.Mongo[0].Name = "another"
	f.put()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	drained := make(chan error, 1)
	go func() { drained <- f.Drain(ctx) }()
	select {
	case <-drained:
		p.ended()
	case <-time.After(10 * time.Second):
		t.Error("the proxy waits for a listener that there is not any more")
	}
}

// TestDrainMeetsNewcomers: a connection that was accepted just before the listener closed is
// closed, too.
func TestDrainMeetsNewcomers(t *testing.T) {
	f := newFront(t, func(m *config.Mongo) { m.HandshakeTimeout = -1 }, newServer(t, fine))
	for _, l := range f.listeners {
		l.draining.Store(true)
	}
	p := f.dial()
	if err := p.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	p.ended()
	f.closed(Drained)
}
