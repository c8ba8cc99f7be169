package clients

import (
	"crypto/tls"
	"maps"
	"net"
	"net/netip"
)

// Admit is an [connlimit.Config.Near]: it decides about a new connection near the
// maximum. The number of open connections includes the new one.
func (s *Set) Admit(conn net.Conn, open, most int) bool {
	for {
		victim, ok := s.makeRoom(prefixOf(conn.RemoteAddr()), open, most)
		if victim == nil {
			return ok
		}
		if hangUp(victim.conn) == nil { // else it has been closed, and the server has not noticed yet
			s.evicted.Add(1)
			return true
		}
	}
}

// makeRoom reports whether an address may have one more connection, and which connection to
// close for it, which is then forgotten; nil if none.
func (s *Set) makeRoom(prefix netip.Prefix, open, most int) (victim *clientConn, ok bool) {
	now := monotonic()
	s.mu.Lock()
	defer s.mu.Unlock()
	var rank ranking
	own := s.addresses[prefix]
	switch {
	case own != nil && len(own.clients) >= share(most, addressShare):
		rank.connections(maps.Keys(own.clients), now)
	case open > most:
		rank.connections(maps.Values(s.conns), now)
		if rank.client != nil && rank.client.waiting(now) < leastStall && s.unequal(own) {
			return nil, false // the listener then closes one of the address that has most
		}
	default:
		return nil, true
	}
	if rank.client == nil {
		return nil, false
	}
	s.forget(rank.client)
	return rank.client, true
}

// hangUp closes a connection at once: TLS would wait for its client. Its reader and its
// writer get an error.
func hangUp(conn net.Conn) error {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	return conn.Close()
}

// unequal reports whether an address has at least double the number of connections that a
// client would have with one more. It looks at mostSeen of them at most.
func (s *Set) unequal(own *address) bool {
	n := 1
	if own != nil {
		n += len(own.clients)
	}
	seen := 0
	for _, a := range s.addresses {
		if len(a.clients) >= 2*n {
			return true
		}
		if seen++; seen == mostSeen {
			break
		}
	}
	return false
}
