package connlimit

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway/ratelimit"
)

// A server has one processor. It works on connections first, in their order: their handshakes are
// ready before their requests, and a client waits for half a second.
type server struct {
	overload overload
	off      bool          // without the limit
	now      time.Time     // of the last step
	request  time.Duration // processor time
	shakes   []shake       // that wait
	requests int           // that wait, of connections that are kept
	begun    uint64
	used     []time.Duration // in the last steps
	rejected map[string]int
	admitted map[string]int
}

type shake struct {
	at   time.Time
	asks bool // brings a request
}

const (
	step      = 10 * time.Millisecond
	handshake = 300 * time.Microsecond
	resetting = 30 * time.Microsecond
	patience  = 500 * time.Millisecond
)

func newServer() *server {
	return &server{
		overload: newOverload(), now: time.Unix(1, 0), request: 1500 * time.Microsecond,
		rejected: make(map[string]int), admitted: make(map[string]int),
	}
}

// work is Config.Work.
func (h *server) work(time.Time) (begun uint64, cpu float64) {
	var all time.Duration
	for _, d := range h.used {
		all += d
	}
	return h.begun, all.Seconds() / (float64(max(1, len(h.used))) * step.Seconds())
}

// connect has clients connect, and returns the processor time of resets.
func (h *server) connect(from string, n int, asks bool) (cost time.Duration) {
	for i := range n {
		at := h.now.Add(time.Duration(i) * step / time.Duration(n))
		if !h.off && !h.overload.admit(at, netip.MustParseAddr(from), h.work) {
			h.rejected[from]++
			cost += resetting
			continue
		}
		h.admitted[from]++
		h.shakes = append(h.shakes, shake{h.now, asks})
	}
	return cost
}

// run lets a step of time pass, with some of it spent, and serves.
func (h *server) run(spent time.Duration) {
	for len(h.shakes) > 0 && spent < step {
		s := h.shakes[0]
		h.shakes = h.shakes[1:]
		spent += handshake
		if s.asks && h.now.Sub(s.at) < patience {
			h.requests++
		}
	}
	for h.requests > 0 && spent < step {
		h.requests--
		h.begun++
		spent += h.request
	}
	h.requests = min(h.requests, 20) // the shedder rejects the others
	h.used = append(h.used[max(0, len(h.used)-9):], min(spent, step))
	h.now = h.now.Add(step)
}

const client = "192.0.2.1"

// TestOverloadOfHandshakes: where more connections come than can be served, most of the requests that are
// possible begin: four fifths, and half where handshakes are most of the work. Without the limit almost none does.
func TestOverloadOfHandshakes(t *testing.T) {
	for _, row := range []struct {
		name    string
		perStep int           // connections, each with a request
		kept    int           // requests per step on connections that are kept
		request time.Duration // processor time
		least   float64       // requests per second
		clients int           // addresses that they come from in turn
	}{
		{"a connection for each request", 60, 0, 1500 * time.Microsecond, 400, 1},
		{"requests of 10 ms", 60, 0, 10 * time.Millisecond, 75, 1},
		{"requests of 100 µs", 60, 0, 100 * time.Microsecond, 1100, 1},
		{"late calls close their connections", 40, 60, 1500 * time.Microsecond, 450, 1},
		{"a storm", 150, 0, 20 * time.Microsecond, 850, 1},
		{"a new address for each connection", 60, 0, 1500 * time.Microsecond, 400, 1 << 24},
	} {
		t.Run(row.name, func(t *testing.T) {
			served := func(off bool) float64 {
				h := newServer()
				h.off, h.request = off, row.request
				var before uint64
				next := 0
				for i := range 2000 {
					if i == 1500 {
						before = h.begun
					}
					var cost time.Duration
					for range min(row.perStep, row.clients) {
						next = (next + 1) % row.clients
						cost += h.connect(netip.AddrFrom4([4]byte{10, byte(next >> 16), byte(next >> 8), byte(next)}).String(), row.perStep/min(row.perStep, row.clients), true)
					}
					h.requests += row.kept
					h.run(cost)
				}
				return float64(h.begun-before) / 5
			}
			with, without := served(false), served(true)
			if with < row.least || without > with/10 {
				t.Errorf("%.0f requests per second begin, without the limit %.0f; want %.0f", with, without, row.least)
			}
		})
	}
}

// TestNoOverloadOfHandshakes: where connections are not what keeps the processors from serving
// requests, none is rejected.
func TestNoOverloadOfHandshakes(t *testing.T) {
	for name, load := range map[string]func(h *server, i int){
		"connections without requests":            func(h *server, _ int) { h.connect(client, 5, false) },
		"1,000 clients at once":                   func(h *server, i int) { h.connect(client, map[int]int{100: 1000}[i], true) },
		"1,000 that send nothing":                 func(h *server, i int) { h.connect(client, map[int]int{100: 1000}[i], false) },
		"1,000 at once, and 1,000 more":           func(h *server, i int) { h.connect(client, map[int]int{100: 1000, 135: 1000}[i], true) },
		"a connection for each request, .97 busy": func(h *server, i int) { h.connect(client, 5, true); h.requests += i % 2 },
		"overload on connections that are kept":   func(h *server, i int) { h.connect(client, i%2, true); h.requests += 50 },
		".9 busy, and 200 clients at once each second": func(h *server, i int) {
			h.connect(client, map[int]int{50: 200}[i%100], true)
			h.requests += 5
		},
		"other work and checks of health": func(h *server, i int) {
			h.connect(client, i%2, false)
			h.requests++
			h.run(8 * time.Millisecond)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newServer()
			for i := range 1000 {
				if i%10 == 0 {
					h.connect(client, 1, true)
				}
				load(h, i)
				h.run(0)
			}
			if n := h.rejected[client]; n > 0 {
				t.Errorf("%d connections were rejected, %d let in", n, h.admitted[client])
			}
		})
	}
}

// TestOverloadEnds: a second after the last rejection there is no limit.
func TestOverloadEnds(t *testing.T) {
	h := newServer()
	for range 500 {
		h.run(h.connect(client, 60, true))
	}
	clear(h.rejected)
	for range 200 {
		h.run(h.connect(client, 1, true))
	}
	if h.rejected[client] > 60 || h.overload.rate > 0 {
		t.Errorf("%d connections were rejected after the overload; limited: %t", h.rejected[client], h.overload.rate > 0)
	}
}

// TestOverloadFollows: the limit rises when requests become cheaper, and after counts begin again, as after
// a change of the configuration.
func TestOverloadFollows(t *testing.T) {
	h := newServer()
	for range 500 {
		h.run(h.connect(client, 60, true))
	}
	h.request, h.begun = h.request/3, 0
	for range 300 {
		h.run(h.connect(client, 60, true))
	}
	before := h.begun
	for range 200 {
		h.run(h.connect(client, 60, true))
	}
	if rate := float64(h.begun-before) / 2; rate < 600 { // 1,000 are possible
		t.Errorf("%.0f requests per second begin", rate)
	}
}

// TestOverloadByOneClient: a client that connects without an end, and sends nothing, takes few connections
// from others, also from one that has half of theirs.
func TestOverloadByOneClient(t *testing.T) {
	const flood, crowd = "198.51.100.1", "203.0.113.7"
	h := newServer()
	for i := range 1000 {
		if i == 300 {
			clear(h.rejected)
			clear(h.admitted)
		}
		cost := h.connect(flood, 100, false)
		cost += h.connect(fmt.Sprintf("192.0.2.%d", i%50), 1, true)
		cost += h.connect(crowd, 1, true)
		h.run(cost)
	}
	for from, n := range h.rejected {
		if all := n + h.admitted[from]; from != flood && float64(n) > 0.1*float64(all) {
			t.Errorf("%d of %d connections of %s were rejected", n, all, from)
		}
	}
	if h.rejected[flood] < 50_000 {
		t.Errorf("%d connections of the flood were rejected", h.rejected[flood])
	}
}

func TestShare(t *testing.T) {
	for _, row := range []struct {
		asked []int
		n     float64
		want  float64
	}{
		{nil, 5, math.Inf(1)},
		{[]int{1, 2, 2}, 5, math.Inf(1)},
		{[]int{1, 2, 9}, 5, 2},
		{[]int{9, 9, 9}, 6, 2},
		{[]int{1, 90}, 5, 4},
		{[]int{9, 9}, 0.5, 0.25},
	} {
		clients := make(map[netip.Prefix]*count)
		for i, n := range row.asked {
			clients[netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 32)] = &count{asked: n}
		}
		if got := share(clients, row.n); got != row.want {
			t.Errorf("%v of %v: %v, want %v", row.asked, row.n, got, row.want)
		}
	}
}

// TestListenerInOverload: a Listener asks for Work, resets what is too much, and says why. Exempt clients
// are let in.
func TestListenerInOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var limits []Limit
		asked := 0
		l, p, in := listen(t, Config{
			Rejected: func(_ net.Addr, limit Limit) { limits = append(limits, limit) },
			Rate:     ratelimit.Config{Exempt: ratelimit.Exempt{CIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}},
			Work:     func(time.Time) (uint64, float64) { asked++; return 0, 1 },
		})
		for range 300 { // 3 s
			for range 2 {
				p.dial(stranger)
			}
			time.Sleep(10 * time.Millisecond) // virtual
		}
		friend := p.dial("10.1.2.3:4")
		if friend.closed.Load() || asked > 31 || len(limits) < 100 || slices.ContainsFunc(limits, func(l Limit) bool { return l != LimitOverload }) {
			t.Errorf("friend rejected: %t; asked %d times; rejected for %v", friend.closed.Load(), asked, limits)
		}
		if got := l.Stats(time.Now()); got.RejectedTotal != uint64(len(limits)) {
			t.Errorf("%+v, and %d were reported", got, len(limits))
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		for range in {
		}
	})
}
