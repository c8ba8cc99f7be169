package connlimit

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway/internal/claims"
	"github.com/seed90641741/spillway/internal/netconn"
	"github.com/seed90641741/spillway/ratelimit"
)

// host returns the i-th address of a network, with a port.
func host(network string, i int) string {
	addr := netip.MustParseAddr(network)
	b := addr.AsSlice()
	for at := len(b) - 1; i > 0; at-- {
		b[at] += byte(i)
		i >>= 8
	}
	addr, _ = netip.AddrFromSlice(b)
	return netip.AddrPortFrom(addr, 1000).String()
}

// TestOneAddressCannotHoldAllConnections: at MaxOpen, clients with few connections
// replace connections of the address that has most, and keep theirs when it connects again.
func TestOneAddressCannotHoldAllConnections(t *testing.T) {
	for name, attacker := range map[string]func(i int) string{
		"one address":       func(int) string { return "192.0.2.1:1" },
		"one /64 of IPv6":   func(i int) string { return host("2001:db8::", 1+i) },
		"IPv4 in IPv6 form": func(i int) string { return []string{"192.0.2.1:1", "[::ffff:192.0.2.1]:1"}[i%2] },
		"a zone of IPv6":    func(i int) string { return fmt.Sprintf("[fe80::1%%eth%d]:1", i%7) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const most = 100
				l, p, _ := listen(t, Config{MaxOpen: most})
				defer l.Close()
				dialled := 0
				attack := func(n int) {
					for range n {
						p.dial(attacker(dialled))
						dialled++
					}
				}
				attack(2 * most)
				var honest []*peer
				for i := range 30 {
					honest = append(honest, p.dial(host("198.51.100.0", 1+i)))
					attack(5)
				}
				for i, c := range honest {
					if c.closed.Load() {
						t.Errorf("honest connection %d was closed", i)
					}
				}
				if n := l.Stats(time.Now()).Open; n != most {
					t.Errorf("%d are open, want %d", n, most)
				}
			})
		})
	}
}

// TestRejectedConnectionsReplaceNone: connections that come too often, from as many addresses, close none of a proxy that has them
// all, and is exempt from the rate.
func TestRejectedConnectionsReplaceNone(t *testing.T) {
	const most, seconds, each = 100, 10, 100
	exempt := ratelimit.Exempt{CIDRs: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}
	for name, rate := range map[string]ratelimit.Config{
		"rate":  {Rate: 1, BurstSeconds: 1, Exempt: exempt},
		"queue": {Rate: 1, BurstSeconds: 1, QueueDepth: 2, Exempt: exempt},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, p, _ := listen(t, Config{MaxOpen: most, Rate: rate})
				defer l.Close()
				var proxy [most]*peer
				for i := range proxy {
					proxy[i] = p.dial("192.0.2.1:1")
				}
				closed := 0
				for i := range seconds * each {
					p.dial(fmt.Sprintf("[2001:db8:1:%x::1]:1", i)) // each of another /64
					for j, c := range proxy {
						if c == nil || c.closed.Load() {
							if c != nil {
								closed++
							}
							if proxy[j] = p.dial("192.0.2.1:1"); proxy[j].closed.Load() {
								proxy[j] = nil // all are open
							}
						}
					}
					time.Sleep(time.Second / each) // in the virtual time of the bubble
				}
				if let := 1 + rate.QueueDepth + seconds; closed == 0 || closed > let {
					t.Errorf("%d connections of the proxy were closed for %d that came, want one for each of at most %d that were let in", closed, seconds*each, let)
				}
			})
		})
	}
}

// TestOneAddressCannotHoldAllOfTheQueue is the same for connections that wait for their
// turn: each honest client gets in after the time that the queue takes at most.
func TestOneAddressCannotHoldAllOfTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate, depth = 20, 40
		l, p, in := listen(t, Config{Rate: ratelimit.Config{Rate: rate, BurstSeconds: .1, QueueDepth: depth}})
		defer l.Close()
		accepted := make(map[string]time.Duration)
		dialled := make(map[string]time.Duration)
		began := time.Now()
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			for c := range in {
				accepted[c.RemoteAddr().String()] = time.Since(began)
				_ = c.Close()
			}
		}()
		for i := range 3000 {
			p.dial("192.0.2.1:1")
			if i%50 == 49 {
				from := host("198.51.100.0", 1+i/50)
				dialled[from] = time.Since(began)
				p.dial(from)
			}
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		if s := l.Stats(time.Now()); s.Open != 0 || s.Rate.Waiting != 0 || len(l.line.all) != 0 || len(l.open.all) != 0 {
			t.Errorf("something is left: %+v", s)
		}
		l.Close()
		<-gone
		for from, at := range dialled {
			if took, ok := accepted[from]; !ok || took-at > depth*time.Second/rate+time.Second/rate {
				t.Errorf("%s is accepted: %v, after %v", from, ok, took-at)
			}
		}
	})
}

// TestAlikeAddressesLeaveEachOtherAlone: connections of load balancers, which have about
// the same number of them, are never closed for one another.
func TestAlikeAddressesLeaveEachOtherAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, p, _ := listen(t, Config{MaxOpen: 60})
		defer l.Close()
		var open []*peer
		for i := range 60 {
			open = append(open, p.dial([]string{"192.0.2.1:1", "192.0.2.1:2", "192.0.2.2:1"}[i%3])) // 40 and 20
		}
		for i := range 100 {
			if c := p.dial([]string{"192.0.2.1:1", "192.0.2.2:1"}[i%2]); !c.closed.Load() {
				t.Fatal("one more is accepted")
			}
		}
		for _, c := range open {
			if c.closed.Load() {
				t.Fatal("an open connection was closed")
			}
		}
	})
}

// TestReplacingEnds: clients that connect again whenever they are reset do not replace
// each other for ever, however many addresses they have.
func TestReplacingEnds(t *testing.T) {
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			const most = 64
			random := rand.New(rand.NewPCG(seed, 1))
			l, p, _ := listen(t, Config{MaxOpen: most})
			defer l.Close()
			want := make([]int, 2+random.IntN(40))
			for i := range want {
				want[i] = 1 + random.IntN(most)
			}
			conns := make([][]*peer, len(want))
			quiet := 0
			for round := 0; quiet < 3; round++ {
				before := l.Stats(time.Now()).Open
				replaced := 0
				for i := range want {
					var kept []*peer
					for _, c := range conns[i] {
						if !c.closed.Load() {
							kept = append(kept, c)
						}
					}
					replaced += len(conns[i]) - len(kept)
					for conns[i] = kept; len(conns[i]) < want[i]; {
						c := p.dial(host("198.51.100.0", 1+i))
						if c.closed.Load() {
							break
						}
						conns[i] = append(conns[i], c)
					}
				}
				if quiet++; replaced > 0 || l.Stats(time.Now()).Open != before {
					quiet = 0
				}
				if round > 2*most {
					t.Fatalf("seed %d: connections are still replaced", seed)
				}
			}
			for i := range want { // each has half of an equal share at least, or all that it wants
				if share := most / len(want) / 2; len(conns[i]) < min(want[i], share) {
					t.Errorf("seed %d: client %d of %d has %d connections, wants %d", seed, i, len(want), len(conns[i]), want[i])
				}
			}
		})
	}
}

// TestHoldersAgainstAModel adds and removes places at random.
func TestHoldersAgainstAModel(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	var h holders
	model := make(map[netip.Prefix]map[*place]bool)
	var places []*place
	for range 20_000 {
		if len(places) == 0 || random.IntN(100) < 52 {
			from := host([]string{"192.0.2.0", "2001:db8::", "2001:db8:0:1::"}[random.IntN(3)], random.IntN(20))
			c := &conn{Conn: netconn.Conn{Conn: &peer{from: from}}}
			h.add(&c.place, c)
			network := claims.Network(address(c))
			if model[network] == nil {
				model[network] = make(map[*place]bool)
			}
			model[network][&c.place] = true
			places = append(places, &c.place)
		} else {
			i := random.IntN(len(places))
			p := places[i]
			places[i] = places[len(places)-1]
			places = places[:len(places)-1]
			h.remove(p)
			h.remove(p) // the second does nothing
			network := claims.Network(address(p.conn))
			if delete(model[network], p); len(model[network]) == 0 {
				delete(model, network)
			}
		}
		most := 0
		for _, all := range model {
			most = max(most, len(all))
		}
		n := random.IntN(8)
		switch p := h.excess(n); {
		case (p != nil) != (most >= 2*(n+1)):
			t.Fatalf("for a client with %d there is a place: %v; the most that one has is %d", n, p != nil, most)
		case p != nil && (!model[p.holder.network][p] || len(model[p.holder.network]) != most):
			t.Fatal("the place is not of an address that has most")
		case len(h.all) != len(model):
			t.Fatalf("%d addresses, want %d", len(h.all), len(model))
		}
	}
}

// TestNearDecidesFirst: where Near lets a connection in, nothing else is closed; where it
// does not, and all are open, the address with most loses one.
func TestNearDecidesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reset []string
		note := func(client net.Addr, limit Limit) { reset = append(reset, fmt.Sprint(client, " ", limit)) }
		l, p, _ := listen(t, Config{MaxOpen: 8, Rejected: note, Near: func(_ net.Conn, open, most int) bool { return open <= most-1 }})
		defer l.Close()
		var held []*peer
		for range 7 {
			held = append(held, p.dial("192.0.2.1:1"))
		}
		if c := p.dial("192.0.2.2:1"); !c.closed.Load() {
			t.Error("a connection that Near rejects is accepted below the limit")
		}
		if err := l.Update(Config{MaxOpen: 7, Rejected: note, Near: func(net.Conn, int, int) bool { return false }}); err != nil {
			t.Fatal(err)
		}
		if c := p.dial("192.0.2.2:1"); c.closed.Load() {
			t.Error("an address that has none gets none of an address that has all")
		}
		closed := 0
		for _, c := range held {
			if c.closed.Load() {
				closed++
			}
		}
		if s := l.Stats(time.Now()); closed != 1 || s.Open != 7 || s.RejectedTotal != 2 {
			t.Errorf("%d closed, %+v", closed, s)
		}
		if want := []string{"192.0.2.2:1 1", "192.0.2.1:1 1"}; !slices.Equal(reset, want) || LimitOpen != 1 {
			t.Errorf("reported %v; want %v", reset, want)
		}
	})
}
