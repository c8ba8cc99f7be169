package upstream

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Calls of HTTP/2 share a connection. While none is there, net/http makes one for each call that waits, and an endpoint that
// has just restarted would receive a TLS handshake for each. So no more connections are made to an address at once than it
// has, and one if it has none. A call that waits for its turn is served by the connection that was made, or fails as
// that one failed.

// handshakes are the connections to each address of a cluster. The zero value is ready.
type handshakes struct {
	mu sync.Mutex
	at map[string]*shared
}

// shared is the connections to one address.
type shared struct {
	open   int   // whose peer has said something
	making int   // whose peer has not
	next   *turn // the next end of one that is being made
}

// A turn ends when a connection has been made, or could not be.
type turn struct {
	ended chan struct{}
	err   error
}

// errNotNeeded ends the attempt to connect for a call that another connection serves. net/http drops it.
var errNotNeeded = errors.New("another connection serves the call")

// inTurn returns dial, and has it wait for its turn.
func (h *handshakes) inTurn(dial DialFunc) DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if err := h.wait(ctx, address); err != nil {
			return nil, err
		}
		c, err := dial(ctx, network, address)
		if err != nil {
			h.ended(address, 0, err)
			return nil, err
		}
		return &turnConn{Conn: c, turns: h, address: address}, nil
	}
}

// handover is how long after a connection was made net/http may take to hand it to the calls that wait.
const handover = 10 * time.Millisecond

// wait returns nil when it is a call's turn to connect. The context of a dial does not end with its call, but has its place.
func (h *handshakes) wait(ctx context.Context, address string) error {
	call, ok := ctx.Value(placeKey{}).(*place)
	if !ok {
		call = &place{Context: ctx}
	}
	for got := call.got.Load(); ; {
		next := h.begin(address)
		if next == nil {
			return nil
		}
		select {
		case <-call.Done():
			return call.Err()
		case <-next.ended:
		}
		if next.err != nil {
			return next.err
		}
		select {
		case <-call.Done():
			return call.Err()
		case <-time.After(handover):
		}
		if call.got.Load() != got {
			return errNotNeeded
		}
	}
}

// begin begins to make a connection, or returns the turn to wait for.
func (h *handshakes) begin(address string) *turn {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.at[address]
	if s == nil {
		if h.at == nil {
			h.at = map[string]*shared{}
		}
		s = &shared{next: newTurn()}
		h.at[address] = s
	}
	if s.making >= max(1, s.open) {
		return s.next
	}
	s.making++
	return nil
}

func newTurn() *turn { return &turn{ended: make(chan struct{})} }

// ended ends a turn that made so many connections, or could not connect.
func (h *handshakes) ended(address string, made int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.at[address]
	s.making--
	s.open += made
	s.next.err = err
	close(s.next.ended)
	s.next = newTurn()
}

// closed notes that a connection has ended.
func (h *handshakes) closed(address string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at[address].open--
}

// A turnConn ends its turn when its peer says something: its settings are the first that it says, and with them how many
// calls the connection serves.
type turnConn struct {
	net.Conn
	turns   *handshakes
	address string
	ended   atomic.Bool // the turn
	over    atomic.Bool // the connection
}

func (c *turnConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.ended.Load() && !c.ended.Swap(true) {
		c.turns.ended(c.address, 1, nil)
	}
	return n, err
}

// Close implements [net.Conn].
func (c *turnConn) Close() error {
	if !c.over.Swap(true) {
		if c.ended.Swap(true) {
			c.turns.closed(c.address)
		} else {
			c.turns.ended(c.address, 0, nil)
		}
	}
	return c.Conn.Close()
}
