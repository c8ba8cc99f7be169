package connlimit

import (
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/claims"
	"github.com/seed90641741/spillway/internal/elapsed"
	"github.com/seed90641741/spillway/ratelimit"
)

// The comments say what half and double of each constant change. That was measured with the models
// of TestOverloadOfHandshakes and TestOverloadByOneClient. With these values, requests of 1.5 ms,
// 100 µs and 20 µs begin 433, 1,285 and 924 times per second, and the many clients of the second
// test lose 6 % of their connections.
const (
	// window is the interval after which the limit changes. At half, the many clients lose 10 % of
	// their connections; at double, 18 %.
	window = 100 * time.Millisecond
	// recent is the time constant of the rate of requests that the limit follows. At half, 839
	// requests of 20 µs begin per second; at double, 975, and the many clients lose 13 % of their
	// connections.
	recent = 3 * window
	// memory is the time constant of the averages that find an overload. At half, the measurements
	// are the same, but fewer clients can connect at once to an idle server. At double, an overload
	// is found later, and the many clients lose 43 % of their connections.
	memory = time.Second
	// each is the number of connections that are admitted for each request that begins. More
	// connections per request are an overload, as a connection brings at least one request. At
	// half, the limit never rises above fewest; at double, 340, 714 and 510 requests begin per
	// second.
	each = 2
	// busy is the share of the processors above which a process can be in an overload. It is not
	// close to 1, because other processes may use the same processors. At half nothing changes; at
	// 0.9 the limit rises too far, and 158 requests of 100 µs begin per second.
	busy = 0.5
	// fewest is the lowest limit, in connections per second. So many handshakes take 3 % of one
	// processor. At half and at double nothing changes.
	fewest = 100
)

// overload limits the connections per second while handshakes keep the processors from serving
// requests. It is not safe for concurrent use.
type overload struct {
	clock    elapsed.Clock
	since    time.Duration // when the current window began
	came     int           // connections that came in the current window
	begun    uint64        // total of requests when the current window began
	pace     float64       // requests that begin per second, averaged over recent
	cpu      float64       // share of the processors that the process uses, averaged over memory
	arriving float64       // connections that come per second, averaged over memory
	starting float64       // requests that begin per second, averaged over memory
	limiter  *ratelimit.Limiter
	rate     float64       // limit in connections per second; 0: there is no limit
	rejected time.Duration // when a connection was last rejected
	clients  map[netip.Prefix]*count
	share    float64 // connections that each client may have per window
}

// count has the connections of a client in the current window.
type count struct{ asked, admitted int }

func newOverload() overload {
	limiter, _ := ratelimit.New(ratelimit.Config{}) // the zero Config is valid
	return overload{limiter: limiter}
}

// admit reports whether a connection from an address is let in. work is [Config.Work].
func (o *overload) admit(now time.Time, from netip.Addr, work func(time.Time) (uint64, float64)) bool {
	at := o.clock.See(now)
	if passed := at - o.since; passed >= window {
		begun, cpu := work(now)
		o.measure(passed, begun, cpu)
		o.decide(at)
		o.since, o.came = at, 0
	}
	o.came++
	if o.rate == 0 {
		return true
	}
	network := claims.Network(from)
	c := o.clients[network]
	if c == nil {
		c = new(count)
		o.clients[network] = c
	}
	c.asked++
	if float64(c.admitted) < o.allowed(at) {
		if _, err := o.limiter.Admit(now, spillway.Call{}); err == nil {
			c.admitted++
			return true
		}
	}
	o.rejected = at
	return false
}

// allowed returns how many connections each client may have had in the current window until the
// time at. The share is spread evenly over the window, so that no client takes all of the limit at
// its start.
func (o *overload) allowed(at time.Duration) float64 {
	if math.IsInf(o.share, 1) {
		return o.share
	}
	return max(1, o.share*(at-o.since).Seconds()/window.Seconds())
}

// measure updates the averages with a window that has ended, of the duration passed.
func (o *overload) measure(passed time.Duration, begun uint64, cpu float64) {
	seconds, starting := passed.Seconds(), 0.0
	if begun > o.begun { // otherwise no request has begun, or the counter was reset
		starting = float64(begun-o.begun) / seconds
	}
	o.begun = begun
	o.pace += float64(elapsed.Weight(passed, recent) * (starting - o.pace))
	weight := elapsed.Weight(passed, memory)
	o.cpu += float64(weight * (cpu - o.cpu))
	o.arriving += float64(weight * (float64(o.came)/seconds - o.arriving))
	o.starting += float64(weight * (starting - o.starting))
}

// decide sets the limit for the next window.
func (o *overload) decide(at time.Duration) {
	limited, short := o.rate > 0, o.cpu > busy
	switch {
	case !limited && (!short || o.arriving <= each*o.starting):
	case limited && at-o.rejected >= memory:
		o.rate = 0
	case limited && !short:
		o.limit(each * o.rate)
	default:
		if !limited {
			o.rejected, o.clients = at, make(map[netip.Prefix]*count)
		}
		o.limit(max(fewest, each*o.pace))
	}
}

// limit sets the connections per second, and divides them among the clients.
func (o *overload) limit(rate float64) {
	o.rate = min(rate, 1e6)
	_ = o.limiter.Update(ratelimit.Config{Rate: o.rate, BurstSeconds: window.Seconds()}) // in range: 100 to 1e6
	o.share = share(o.clients, o.rate*window.Seconds())
	clear(o.clients)
}

// share returns how many of n connections each client may have by max-min fairness: clients that
// ask for less than an equal share get all that they ask for, and the others share the rest
// equally. It returns +Inf if n is enough for all.
func share(clients map[netip.Prefix]*count, n float64) float64 {
	all := make([]int, 0, len(clients))
	for _, c := range clients {
		all = append(all, c.asked)
	}
	slices.Sort(all)
	for i, asked := range all {
		equal := n / float64(len(all)-i)
		if float64(asked) > equal {
			return equal
		}
		n -= float64(asked)
	}
	return math.Inf(1)
}
