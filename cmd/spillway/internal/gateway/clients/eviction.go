package clients

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"
)

// place reports whether a connection may have one more exchange, and which exchange to
// evict for it; nil if none.
func (s *Set) place(c *clientConn) (victim *Exchange, ok bool) {
	now := monotonic()
	var rank ranking
	switch {
	case !scarce(s.requests, s.most):
		return nil, true
	case len(c.exchanges) >= share(s.most, connectionShare):
		rank.exchanges(slices.Values([]*clientConn{c}), now)
	case c.address.requests >= share(s.most, addressShare):
		rank.exchanges(maps.Keys(c.address.clients), now)
	case s.requests >= s.most:
		rank.exchanges(maps.Values(s.conns), now)
	default:
		return nil, true
	}
	return rank.exchange, rank.exchange != nil
}

// stalled returns the exchanges to evict for clusters that run out of connections or places:
// the ones that have waited longest for their clients.
func (s *Set) stalled() (all []*Exchange) {
	now := monotonic()
	s.mu.Lock()
	defer s.mu.Unlock()
	type target struct {
		*Pool

		call bool // of gRPC
	}
	waiting, used := make(map[target][]*Exchange), make(map[target]int)
	for _, c := range s.conns {
		for _, x := range c.exchanges {
			to := target{x.pool.Load(), x.stream.Load()}
			if to.Pool == nil {
				continue
			}
			used[to]++
			if x.waiting(now) >= leastStall {
				waiting[to] = append(waiting[to], x)
			}
		}
	}
	for to, slow := range waiting {
		excess := used[to] - to.plenty(to.call)
		if excess <= 0 {
			continue
		}
		slices.SortFunc(slow, func(a, b *Exchange) int { return cmp.Compare(b.waiting(now), a.waiting(now)) })
		all = append(all, slow[:min(len(slow), excess)]...)
	}
	return all
}

// leastStall is how long an exchange must have waited for its client before it is evicted for
// a cluster that is not full yet: longer than the retransmission of a lost segment takes.
const leastStall = time.Second

// evictFrom evicts the exchange of a full cluster that has waited longest for its client, if
// any does.
func (s *Set) evictFrom(full *Pool) {
	now := monotonic()
	rank := ranking{of: full}
	s.mu.Lock()
	rank.exchanges(maps.Values(s.conns), now)
	victim := rank.exchange
	if victim != nil {
		victim.pool.Store(nil) // the next newcomer has another one evicted
		s.evicted.Add(1)
	}
	s.mu.Unlock()
	if victim != nil {
		victim.abort(errEvicted)
	}
}

// A ranking finds the exchange or connection to evict. It stops after mostSeen of them, as it
// may run for each new connection.
type ranking struct {
	exchange *Exchange
	client   *clientConn
	score    float64
	seen     int
	of       *Pool // only exchanges with this one count, without calls of gRPC; nil: all
}

const mostSeen = 512

// weigh reports whether a wait is the greatest so far. A wait counts once for each
// request or connection that its address has.
func (r *ranking) weigh(wait time.Duration, held int) bool {
	r.seen++
	score := wait.Seconds() * float64(max(1, held))
	if score <= r.score {
		return false
	}
	r.score = score
	return true
}

// exchanges considers the exchanges of connections.
func (r *ranking) exchanges(all iter.Seq[*clientConn], now int64) {
	for c := range all {
		for _, x := range c.exchanges {
			if r.of != nil && (x.pool.Load() != r.of || x.stream.Load()) {
				continue
			}
			if wait := x.waiting(now); wait > 0 && r.weigh(wait, c.address.requests) {
				r.exchange = x
			}
		}
		if r.seen++; r.seen >= mostSeen {
			return
		}
	}
}

// connections considers clients whose connection could be closed.
func (r *ranking) connections(all iter.Seq[*clientConn], now int64) {
	for c := range all {
		if wait := c.waiting(now); wait > 0 && r.weigh(wait, len(c.address.clients)) {
			r.client = c
		}
		if r.seen >= mostSeen {
			return
		}
	}
}

// waiting returns how long a connection has only waited for its client; 0 if it does not.
func (c *clientConn) waiting(now int64) time.Duration {
	if len(c.exchanges) == 0 {
		if wait := time.Duration(now - c.idle); c.asked || wait >= firstRequest {
			return max(1, wait)
		}
		return 0
	}
	least := time.Duration(0)
	for _, x := range c.exchanges {
		wait := x.waiting(now)
		if wait == 0 {
			return 0
		}
		if least == 0 || wait < least {
			least = wait
		}
	}
	return least
}
