package connlimit

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// endless is a connection on which as many bytes have come as are asked for.
type endless struct {
	peer
}

func (*endless) Read(p []byte) (int, error) { return len(p), nil }
func (e *endless) Close() error             { e.closed.Store(true); return nil }

// headsOf runs a test with a func that opens a connection from an address.
func headsOf(t *testing.T, test func(t *testing.T, open func(from string) *conn, h *heads)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		rejected := 0
		l, p, in := listen(t, Config{Rejected: func(_ net.Addr, limit Limit) {
			if limit != LimitHeads {
				t.Errorf("rejected for %v", limit)
			}
			rejected++
		}})
		test(t, func(from string) *conn {
			p.conns <- &endless{peer{from: netip.AddrPortFrom(netip.MustParseAddr(from), 4000).String()}}
			return (<-in).(*conn)
		}, &l.heads)
		if n := l.Stats(time.Now()).RejectedTotal; int(n) != rejected {
			t.Errorf("%d connections reset, %d reported", n, rejected)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

const freeOfHead = 4 << 10

// comes reads a head of n bytes, and reports whether all of it was read.
func (c *conn) comes(n int) bool {
	c.HeadBegins(freeOfHead)
	piece := make([]byte, 4<<10)
	for ; n > 0; n -= len(piece) {
		if _, err := c.Read(piece[:min(n, len(piece))]); err != nil {
			return !errors.Is(err, io.EOF)
		}
	}
	c.HeadRead()
	return true
}

// fails has a head of 64 KiB come, which becomes no request.
func fails(open func(string) *conn, from string) bool {
	c := open(from)
	defer c.Close()
	return c.comes(64 << 10)
}

// indebted has an address send long heads until one is reset.
func indebted(t *testing.T, open func(string) *conn, from string) {
	t.Helper()
	for n := 1; ; n++ {
		if !fails(open, from) {
			if n < 5 {
				t.Errorf("head %d is reset", n)
			}
			return
		}
		if n > 10 {
			t.Fatal("no head is reset")
		}
	}
}

// Long heads that become no request are charged to their address, and to no other. Short heads are free.
func TestLongHeads(t *testing.T) {
	headsOf(t, func(t *testing.T, open func(string) *conn, _ *heads) {
		indebted(t, open, "192.0.2.1")
		indebted(t, open, "2001:db8::1:2")
		for from, want := range map[string]bool{
			"192.0.2.1": false, "::ffff:192.0.2.1": false, "192.0.2.2": true,
			"2001:db8::ffff": false, "2001:db8:0:1::2": true,
		} {
			for range 10 { // each on a new connection, and all on one
				short := open(from)
				for range 2 {
					if !short.comes(freeOfHead) {
						t.Errorf("a short head of %s is reset", from)
					}
				}
			}
			c := open(from)
			if got := c.comes(16 << 10); got != want {
				t.Errorf("a long head of %s comes: %t, want %t", from, got, want)
			}
			if reset := c.closed.Load(); reset == want {
				t.Errorf("the connection of %s is reset: %t", from, reset)
			}
		}
	})
}

// Heads of requests are not charged: neither long ones, nor what comes while a request is served.
func TestHeadsOfRequests(t *testing.T) {
	cookies := map[string][]string{"Cookie": {"a", "b"}, "Authorization": {"Negotiate"}}
	headsOf(t, func(t *testing.T, open func(string) *conn, h *heads) {
		kept := open("192.0.2.1")
		for i := range 200 {
			c := kept
			if i%2 == 0 {
				c = open("192.0.2.1")
			}
			if !c.comes(60 << 10) {
				t.Fatalf("head %d is reset", i)
			}
			c.HeadEnds(cookies)
			if _, err := io.CopyN(io.Discard, c, 1<<20); err != nil {
				t.Fatal("in a body:", err)
			}
		}
		for range 200 {
			if !kept.comes(60 << 10) { // and is answered, by others than the handler
				t.Fatal("an answered head is reset")
			}
		}
		kept.HeadEnds(cookies)
		if len(h.all) > 0 {
			t.Errorf("%d addresses are kept", len(h.all))
		}
	})
}

// A request with more lines than others accept pays as if it were none, whether their names differ or not.
func TestHeadsOfManyLines(t *testing.T) {
	same, distinct := map[string][]string{"A": make([]string, headFields+1)}, make(map[string][]string)
	for i := range headFields + 1 {
		distinct[strconv.Itoa(i)] = []string{""}
	}
	for _, fields := range []map[string][]string{same, distinct} {
		headsOf(t, func(t *testing.T, open func(string) *conn, _ *heads) {
			for range 5 {
				c := open("192.0.2.1")
				if !c.comes(60 << 10) {
					t.Fatal("reset too early")
				}
				c.HeadEnds(fields)
			}
			if c := open("192.0.2.1"); c.comes(60 << 10) {
				t.Error("the sixth head is not reset")
			}
		})
	}
}

// A debt ends by itself, after 4 s at most beyond what is allowed at once, and nothing of it is left.
func TestDebtOfHeadsEnds(t *testing.T) {
	headsOf(t, func(t *testing.T, open func(string) *conn, h *heads) {
		for range 1000 {
			fails(open, "192.0.2.1")
		}
		time.Sleep(4*time.Second - time.Millisecond) // virtual
		if fails(open, "192.0.2.1") {
			t.Error("the debt has ended early")
		}
		time.Sleep(9 * time.Second)
		c := open("192.0.2.1")
		if !c.comes(60 << 10) {
			t.Error("the debt has not ended")
		}
		if c.HeadEnds(nil); len(h.all) > 0 {
			t.Errorf("%+v is left", h.all)
		}
	})
}

// Until long heads are requests or errors, an address may have 4 MiB of them, however slow they are.
func TestHeadsThatDoNotEnd(t *testing.T) {
	headsOf(t, func(t *testing.T, open func(string) *conn, _ *heads) {
		read := 0
		for range 200 {
			c := open("192.0.2.1")
			c.HeadBegins(freeOfHead)
			if n, _ := io.CopyN(io.Discard, c, 60<<10); n == 60<<10 {
				read++
			}
		}
		if most := headsRead / (56 << 10); read != most {
			t.Errorf("%d of 200 heads are read, want %d", read, most)
		}
		if c := open("192.0.2.2"); !c.comes(60 << 10) {
			t.Error("another address pays")
		}
	})
}

// Addresses with debts are bounded. A full table charges no further address.
func TestManyAddressesWithLongHeads(t *testing.T) {
	headsOf(t, func(t *testing.T, open func(string) *conn, h *heads) {
		at := func(i int) string { return fmt.Sprintf("10.0.%d.%d", i>>8, i&255) }
		for range 6 {
			for i := range headAccounts + 100 {
				fails(open, at(i))
			}
		}
		if n := len(h.all); n != headAccounts {
			t.Errorf("%d addresses are kept, want %d", n, headAccounts)
		}
		if fails(open, at(0)) || !fails(open, at(headAccounts+1)) || !fails(open, "192.0.2.1") {
			t.Error("the wrong addresses pay")
		}
		time.Sleep(time.Minute)
		indebted(t, open, "192.0.2.1")
		if n := len(h.all); n > 2 {
			t.Errorf("%d addresses are kept", n)
		}
	})
}

// On a connection that is kept, a head costs no memory.
func TestHeadsAllocateNothing(t *testing.T) {
	headsOf(t, func(t *testing.T, open func(string) *conn, _ *heads) {
		c, p, fields := open("192.0.2.1"), make([]byte, 500), map[string][]string{"A": {"b"}}
		if n := testing.AllocsPerRun(100, func() {
			c.HeadBegins(freeOfHead)
			_, _ = c.Read(p)
			c.HeadRead()
			c.HeadEnds(fields)
		}); n > 0 {
			t.Errorf("%v allocations", n)
		}
	})
}
