package clients

import (
	"crypto/tls"
	"net"
	"net/netip"
)

// Admit is an [connlimit.Config.Near]: it decides about a new connection near the
// maximum. The number of open connections includes the new one.
func (s *Set) Admit(conn net.Conn, open, most int) bool {
	for {
		victim, ok := s.makeRoom(prefixOf(conn.RemoteAddr()), open, most)
		if victim == nil || s.hangUpOn(victim) {
			return ok
		}
	}
}

// makeRoom is connect, and forgets the connection to evict.
func (s *Set) makeRoom(prefix netip.Prefix, open, most int) (victim *clientConn, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	victim, ok = s.connect(prefix, open, most)
	if victim != nil {
		s.forget(victim)
	}
	return victim, ok
}

// hangUpOn closes a connection, and reports whether it was still open: the server may not
// have noticed yet that another one has closed it.
func (s *Set) hangUpOn(victim *clientConn) bool {
	if hangUp(victim.conn) != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.evicted++
	return true
}

// hangUp closes a connection at once: TLS would wait for its client. Its reader and its
// writer get an error.
func hangUp(conn net.Conn) error {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	return conn.Close()
}

func (s *Set) connect(prefix netip.Prefix, open, most int) (victim *clientConn, ok bool) {
	now := s.clock.now()
	var rank ranking
	own := s.addresses[prefix]
	switch {
	case own != nil && len(own.clients) >= share(most, addressShare):
		for c := range own.clients {
			if !rank.connection(c, now) {
				break
			}
		}
	case open > most:
		for _, c := range s.conns {
			if !rank.connection(c, now) {
				break
			}
		}
		if rank.client != nil && rank.client.waiting(now) < leastStall && s.unequal(own) {
			return nil, false // the listener then closes one of the address that has most
		}
	default:
		return nil, true
	}
	return rank.client, rank.client != nil
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
