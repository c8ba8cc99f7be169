package servers

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"testing"
	"time"
)

// TestPlaces: all connections of a client go to one server, new clients to the one with
// the fewest, and none to one that cannot be reached while there are others.
func TestPlaces(t *testing.T) {
	e := New()
	e.Update([]string{"a", "b", "c"})
	now := time.Now()
	ann, bob, cid := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.3")
	first := func(who netip.Addr) *Server {
		x := e.enter(who, now, nil)
		e.Leave(who, x)
		return x
	}
	home := e.enter(ann, now, nil)
	e.enter(ann, now, nil)
	if first(ann) != home || first(bob) == home {
		t.Error("a client was moved, or another one put beside it")
	}
	e.enter(bob, now, nil)
	e.all[2].trouble.Store(now.UnixNano())
	if first(cid) == e.all[2] {
		t.Error("a client was put where it is overloaded")
	}
	if now = now.Add(2 * time.Second); first(cid) != e.all[2] {
		t.Error("trouble is not forgotten")
	}
	e.Leave(ann, home)
	if first(ann) != home {
		t.Error("a client was moved")
	}
	e.Leave(ann, home)
	if len(e.clients) != 1 {
		t.Errorf("%d clients are remembered, want 1", len(e.clients))
	}
	e.Update([]string{"b", "d"})
	if len(e.all) != 2 || e.all[0].conns != 1 {
		t.Error("a server that stays was forgotten")
	}
}

// TestClientsStayWhenNoServerIsReached: a client has connections to a server, and then none can be reached. Once they are
// back, its next connection goes to the server that has the others, whose cursors and transactions it knows.
func TestClientsStayWhenNoServerIsReached(t *testing.T) {
	e := New()
	var all [2]net.Listener
	for i := range all {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		all[i] = l
	}
	a, b := all[0].Addr().String(), all[1].Addr().String()
	e.Update([]string{a, b})
	ann := netip.MustParseAddr("10.0.0.1")
	c, home, err := e.Connect(t.Context(), ann, time.Minute, nil)
	if err != nil || home.Address != a {
		t.Fatalf("connected to %v, %v; want the first server", home, err)
	}
	defer c.Close()
	for _, l := range all {
		_ = l.Close()
	}
	for range 2 {
		if _, _, err := e.Connect(t.Context(), ann, time.Minute, nil); err == nil {
			t.Fatal("connected to a server that is away")
		}
		if x := e.enter(ann, time.Now().Add(time.Minute), nil); x != home {
			t.Errorf("the next connection goes to %v, and the others to %v", x.Address, a)
		}
		e.fail(ann, home)
	}
	if e.all[0].conns != 1 || e.all[1].conns != 0 {
		t.Errorf("%d and %d connections, want 1 and 0", e.all[0].conns, e.all[1].conns)
	}
}

// TestPlacesAreTakenAtOnce: a client that makes two connections at the same time has both at
// one server, even if other clients connect meanwhile.
func TestPlacesAreTakenAtOnce(t *testing.T) {
	slow, err := net.Listen("tcp", "127.0.0.1:0") // nobody shakes hands
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	e := New()
	e.Update([]string{slow.Addr().String(), "127.0.0.1:1"})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	ann, bob := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	go func() {
		_, _, err := e.Connect(ctx, ann, time.Minute, new(tls.Config))
		done <- err
	}()
	c, err := slow.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if x := e.enter(bob, time.Now(), nil); x != e.all[1] {
		t.Error("the client that comes next is put beside the first")
	}
	e.enter(bob, time.Now(), nil)
	if x := e.enter(ann, time.Now(), nil); x != e.all[0] {
		t.Error("the second connection goes to another server than the first")
	}
	cancel()
	_ = c.Close()
	if err := <-done; err == nil {
		t.Error("connected")
	}
	if e.all[0].conns != 1 || e.all[1].conns != 2 {
		t.Errorf("%d and %d connections, want 1 and 2", e.all[0].conns, e.all[1].conns)
	}
}
