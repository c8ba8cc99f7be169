package mongoproxy

import (
	"bytes"
	"testing"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/internal/mongowire"
)

// TestProvenStaysSo: once a client has authenticated, the gates apply to its commands. The
// server keeps a user whose next authentication fails, or who logs out of another database.
func TestProvenStaysSo(t *testing.T) {
	failed := doc(func(b *mongowire.Builder) { b.Double("ok", 0); b.Int("code", 18) })
	s := newServer(t, func(h mongowire.Header, rest []byte) [][]byte {
		if bytes.Contains(rest, []byte("wrong")) {
			return [][]byte{mongowire.AppendMsg(nil, 1, h.RequestID, 0, failed)}
		}
		return fine(h, rest)
	})
	f := newFront(t, func(m *config.Mongo) {
		m.Authentication = true
		m.Parameters = config.MongoParameters{RequestEnabled: true, RequestRate: 1.0 / 3600, RequestBurst: 3600}
	}, s)
	p := f.dial()
	p.ask(hello(true))
	authenticate := func(field string) []byte {
		return msg(2, 0, doc(func(b *mongowire.Builder) {
			b.Int("authenticate", 1)
			b.Text("user", field)
			b.Text("$db", "$external")
		}))
	}
	for range 3 {
		if !isOK(p.ask(msg(3, 0, ping))) {
			t.Fatal("rejected before it has authenticated")
		}
	}
	p.ask(authenticate("ann"))
	if !isOK(p.ask(msg(4, 0, ping))) {
		t.Fatal("rejected with a token")
	}
	for _, message := range [][]byte{authenticate("wrong"), msg(5, 0, commanding("logout", nil))} {
		p.ask(message)
		if isOK(p.ask(msg(6, 0, ping))) {
			t.Errorf("let in without a token after %q", message)
		}
	}
}

// TestHiddenAuthentication: before authentication, a command whose name is outside of the
// inspected part closes the connection, as it may authenticate.
func TestHiddenAuthentication(t *testing.T) {
	long := doc(func(b *mongowire.Builder) { b.Text("x", string(make([]byte, 20<<10))) })
	sequence := append(append([]byte{1}, u32(uint32(4+2+len(long)))...), append([]byte("a\x00"), long...)...)
	start := doc(func(b *mongowire.Builder) { b.Int("saslStart", 1); b.Text("$db", "admin") })
	for _, authentication := range []bool{true, false} {
		f := newFront(t, func(m *config.Mongo) { m.Authentication = authentication }, newServer(t, fine))
		p := f.dial()
		p.ask(hello(false))
		p.send(raw(0, mongowire.OpMsg, u32(0), sequence, []byte{0}, start))
		if !authentication {
			p.receive()
			continue
		}
		p.ended()
		f.closed(Unauthenticated)
	}
}

// TestStrangersHaveClasses: a client without metadata is also classified.
func TestStrangersHaveClasses(t *testing.T) {
	f := newFront(t, func(m *config.Mongo) {
		m.Classes = []config.MongoClass{{Criticality: "SHEDDABLE"}}
		m.Shed.Mode = "enforce"
	}, newServer(t, fine))
	f.dial().ask(msg(1, 0, ping))
	for class, s := range f.stats().Gate.Shed.Classes {
		if want := uint64(1); class == 0 && s.AdmittedTotal != want || class > 0 && s.AdmittedTotal > 0 {
			t.Errorf("class %d: %d let in", class, s.AdmittedTotal)
		}
	}
}
