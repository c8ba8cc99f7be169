package clients

import (
	"context"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"
)

// TestFlow waits for clients that send in different ways, at 1000 bytes a second.
func TestFlow(t *testing.T) {
	type wait struct {
		d     time.Duration
		bytes int
	}
	const s = time.Second
	for _, row := range []struct {
		name              string
		waits             []wait
		overdrawn, waited time.Duration
	}{
		{"as fast as the rate", slices.Repeat([]wait{{s, 1000}}, 60), 0, 60 * s},
		{"faster", slices.Repeat([]wait{{s / 10, 1000}}, 60), 0, 6 * s},
		{"dripping", slices.Repeat([]wait{{s, 1}}, 60), 60*s - 60*time.Millisecond, 60 * s},
		{"half as fast", slices.Repeat([]wait{{s, 500}}, 60), 30 * s, 60 * s},
		// Bytes that arrive quickly do not pay for silence later: otherwise a client could be
		// silent for days.
		{"much, and then silent", []wait{{s, 1_000_000}, {20 * s, 1}}, 20*s - time.Millisecond, 21 * s},
		{"a gap, and then fast", []wait{{20 * s, 0}, {s, 21_000}}, 0, 21 * s},
	} {
		var f flow
		now := int64(1)
		for _, w := range row.waits {
			f.begin(now)
			now += int64(w.d)
			f.end(now, w.bytes, 0, 1000)
			now += int64(time.Hour) // without a wait
		}
		if got, total := f.overdrawn(now), f.waited(now); got != row.overdrawn || total != row.waited {
			t.Errorf("%s: overdrawn by %v of %v, want %v of %v", row.name, got, total, row.overdrawn, row.waited)
		}
		f.begin(now)
		if got := f.overdrawn(now + int64(s)); got != row.overdrawn+s || !f.waits() {
			t.Errorf("%s: overdrawn by %v while it waits, want %v", row.name, got, row.overdrawn+s)
		}
	}
}

// from is a connection from an address.
type from struct {
	net.Conn
	address string
	closed  bool
}

func (f *from) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(f.address), Port: 1} }
func (f *from) Close() error         { f.closed = true; return nil }

// house is a set of clients that the test controls.
type house struct {
	*Set
	t *testing.T
}

func (h house) connect(address string) *clientConn {
	h.t.Helper()
	conn := &from{address: address}
	return h.Open(h.t.Context(), conn).Value(clientKey{}).(*clientConn)
}

// ask begins an exchange, nil if there may be none. If it waits, it has done so since.
func (h house) ask(c *clientConn, waits time.Duration) *Exchange {
	h.t.Helper()
	r := httptest.NewRequestWithContext(context.WithValue(h.t.Context(), clientKey{}, c), http.MethodGet, "/", nil)
	x, _ := NewExchange(httptest.NewRecorder(), r, &Bounds{})
	if !h.Begin(x) {
		return nil
	}
	if waits > 0 {
		x.writes.begin(monotonic() - int64(waits))
	}
	return x
}

func (h house) gone(x *Exchange) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !slices.Contains(x.client.exchanges, x)
}

// TestEviction fills a house of 16 places in different ways.
func TestEviction(t *testing.T) {
	full := func(most int) house { return house{New(most, 0), t} }

	h := full(16)
	a := h.connect("192.0.2.1")
	first := h.ask(a, time.Second)
	for range 11 {
		if h.ask(a, 0) == nil {
			t.Error("below three quarters of the cap a connection has no limit")
		}
	}
	if h.ask(a, 0) == nil || !h.gone(first) {
		t.Error("a connection that has its share evicts one of its own")
	}
	if h.ask(a, 0) != nil {
		t.Error("a connection that has its share, and waits for nothing, gets no more")
	}
	for i, address := range []string{"192.0.2.2", "192.0.2.3", "2001:db8::1", "2001:db8:0:1::1"} {
		if h.ask(h.connect(address), 0) == nil {
			t.Errorf("%d: others get the last quarter", i)
		}
	}
	if h.ask(h.connect("192.0.2.9"), 0) != nil {
		t.Error("there is room for one more than there may be")
	}
	if s := h.Stats(); s.Requests != 16 || s.Evicted != 1 || s.Rejected != 2 {
		t.Errorf("%+v", s)
	}

	h = full(16)
	var crowd []*Exchange
	for i := range 15 { // of one host: a /64 has many addresses
		crowd = append(crowd, h.ask(h.connect([...]string{"2001:db8::1", "2001:db8::2", "2001:db8::3"}[i%3]), time.Duration(i+1)*time.Millisecond))
	}
	lonely := h.ask(h.connect("192.0.2.1"), 5*time.Millisecond)
	if lonely == nil || h.ask(h.connect("192.0.2.2"), 0) == nil {
		t.Error("nothing was evicted")
	}
	if h.gone(lonely) {
		t.Error("an address with one request was evicted for one with many")
	}
	if n := slices.IndexFunc(crowd, func(x *Exchange) bool { return x != nil && h.gone(x) }); n < 0 {
		t.Error("none of the address with many was evicted")
	}
}

// TestEvictionFromFullCluster: each request that finds its cluster full has the exchange evicted
// that has waited longest for its client there, however short that is.
func TestEvictionFromFullCluster(t *testing.T) {
	h := house{New(0, 0), t}
	full, other := new(Pool), new(Pool)
	in := func(x *Pool, waits time.Duration) *Exchange {
		e := h.ask(h.connect("192.0.2.1"), waits)
		e.pool.Store(x)
		return e
	}
	works, brief, longer := in(full, 0), in(full, time.Millisecond), in(full, time.Second)
	elsewhere, call := in(other, time.Minute), in(full, time.Minute)
	call.stream.Store(true)
	for i, want := range [][]*Exchange{{longer}, {longer, brief}, {longer, brief}} {
		h.evictFrom(full)
		for name, x := range map[string]*Exchange{"works": works, "brief": brief, "longer": longer, "elsewhere": elsewhere, "call": call} {
			if got := x.aborted; got != slices.Contains(want, x) {
				t.Errorf("after %d newcomers: %s is evicted: %v", i+1, name, got)
			}
		}
	}
	if s := h.Stats(); s.Evicted != 2 {
		t.Errorf("%d evicted, want 2", s.Evicted)
	}
}

// TestShareOfAddressWithClosedConnections: by HTTP/2 a request may begin when its connection is closed. It does not make its
// address be forgotten, which has other connections: otherwise a client could have any number of them.
func TestShareOfAddressWithClosedConnections(t *testing.T) {
	const address, most = "192.0.2.1", 40
	h := house{New(0, 0), t}
	closed := h.connect(address)
	h.State(closed.conn, http.StateClosed)
	for range share(most, addressShare) {
		h.connect(address)
	}
	h.End(h.ask(closed, 0))
	if h.Admit(&from{address: address}, most, most) {
		t.Error("an address that has its share of the connections gets one more")
	}
}

// TestCountsOfClients begins and ends exchanges at random, and counts again after each.
func TestCountsOfClients(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	h := house{New(40, 0), t}
	var conns, closed []*clientConn
	var open []*Exchange
	for range 5000 {
		switch n := random.IntN(10); {
		case n == 0 || len(conns) == 0:
			conns = append(conns, h.connect([...]string{"192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8:1::1"}[random.IntN(4)]))
		case n == 1:
			i := random.IntN(len(conns))
			h.State(conns[i].conn, http.StateClosed)
			closed = append(closed, conns[i])
			conns = slices.Delete(conns, i, i+1)
		case n == 2 && len(closed) > 0: // by HTTP/2 requests may begin then
			if x := h.ask(closed[random.IntN(len(closed))], 0); x != nil {
				open = append(open, x)
			}
		case n < 6:
			if x := h.ask(conns[random.IntN(len(conns))], time.Duration(random.IntN(2)*random.IntN(1e9))); x != nil {
				open = append(open, x)
			}
		case len(open) > 0:
			i := random.IntN(len(open))
			open[i].End()
			h.End(open[i])
			open = slices.Delete(open, i, i+1)
		}
		h.consistent(open)
	}
	for _, x := range open {
		h.End(x)
	}
	for _, c := range conns {
		h.State(c.conn, http.StateClosed)
	}
	if s := h.Stats(); s.Requests != 0 || len(h.conns) != 0 || len(h.addresses) != 0 || s.Evicted == 0 {
		t.Errorf("%+v, and %d addresses are left", s, len(h.addresses))
	}
}

func (h house) consistent(open []*Exchange) {
	h.t.Helper()
	counted := 0
	byAddress, byConn := make(map[*address]int), make(map[*clientConn]int)
	for _, x := range open {
		if slices.Contains(x.client.exchanges, x) {
			counted++
			byAddress[x.client.address]++
			byConn[x.client]++
		}
	}
	if h.requests != counted || counted > h.most {
		h.t.Fatalf("%d requests are counted, there are %d, and may be %d", h.requests, counted, h.most)
	}
	for a, n := range byAddress {
		if a.requests != n {
			h.t.Fatalf("%v has %d requests, counted %d", a.prefix, n, a.requests)
		}
		if h.addresses[a.prefix] != a {
			h.t.Fatalf("%v has %d requests, and is forgotten", a.prefix, n)
		}
	}
	for c, n := range byConn {
		if len(c.exchanges) != n {
			h.t.Fatalf("a connection has %d requests, counted %d", n, len(c.exchanges))
		}
	}
}
