package spillredis

import (
	"context"
	"net"
	"os"
	"sync"
	"time"

	"github.com/seed90641741/spillway/fault"
)

const (
	// redialEvery is the pause between two dials to a server that refuses connections: 100
	// rejected connections per second cost a starting server less than 1 % of a processor.
	redialEvery = 10 * time.Millisecond
	// redialFor is how long a dial goes on. A server that restarts is mostly back by then, and
	// go-redis, which dials for 400 ms and makes four attempts, has its callers wait longer.
	redialFor = time.Second
)

// A redialer dials one server. A server that refuses connections is away: it is not
// overloaded, and it may be back at any moment. So a rejected dial is repeated until the server
// is back, or redialFor has passed. One dial at a time does that for all others, so the
// load on the server does not depend on how many callers wait.
//
// After poolSize failed dials go-redis fails commands at once, and dials once per second
// for itself until that succeeds. No caller waits for that dial, so it goes on until its
// context ends.
type redialer struct {
	poolSize int
	turn     chan struct{} // holds a value while a dial is being repeated

	mu     sync.Mutex
	last   error // the last rejection; nil while the server accepts connections
	failed int   // dials, as go-redis counts them
}

func newRedialer(poolSize int) *redialer {
	return &redialer{poolSize: poolSize, turn: make(chan struct{}, 1)}
}

// dial dials until the server accepts the connection.
func (r *redialer) dial(next func() (net.Conn, error), left <-chan struct{}) (net.Conn, error) {
	if r.rejection() == nil {
		if conn, err := r.try(next); !rejected(err) {
			return r.count(conn, err)
		}
	}
	return r.count(r.repeat(next, left))
}

// repeat waits for its turn, and dials again until the server is back.
func (r *redialer) repeat(next func() (net.Conn, error), left <-chan struct{}) (net.Conn, error) {
	over, stop := r.limit()
	defer stop()
	select {
	case r.turn <- struct{}{}:
	case <-over:
		return nil, r.rejectionOr(os.ErrDeadlineExceeded)
	case <-left:
		return nil, r.rejectionOr(context.DeadlineExceeded)
	}
	if r.rejection() == nil { // it is back: all dial at once
		<-r.turn
		return r.try(next)
	}
	defer func() { <-r.turn }()
	for {
		conn, err := r.try(next)
		if !rejected(err) {
			return conn, err
		}
		select {
		case <-time.After(redialEvery):
		case <-over:
			return nil, err
		case <-left:
			return nil, err
		}
	}
}

// limit returns what ends a dial that is rejected again and again.
func (r *redialer) limit() (over <-chan time.Time, stop func() bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed >= r.poolSize {
		return nil, func() bool { return false }
	}
	timer := time.NewTimer(redialFor)
	return timer.C, timer.Stop
}

// rejection returns the last error of a server that refuses connections, or nil.
func (r *redialer) rejection() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// rejectionOr returns the last rejection, or err if the server is back.
func (r *redialer) rejectionOr(err error) error {
	if last := r.rejection(); last != nil {
		return last
	}
	return err
}

// try dials once, and keeps what that says of the server.
func (r *redialer) try(next func() (net.Conn, error)) (net.Conn, error) {
	conn, err := next()
	if err == nil || rejected(err) { // any other error says nothing
		r.mu.Lock()
		defer r.mu.Unlock()
		r.last = err
	}
	return conn, err
}

// count counts the end of a dial.
func (r *redialer) count(conn net.Conn, err error) (net.Conn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil:
		r.failed++
	case r.failed >= r.poolSize:
		r.failed = 0
	}
	return conn, err
}

// rejected reports whether err says that no server accepts connections there.
func rejected(err error) bool {
	return err != nil && fault.Of(err).Unprocessed && !timedOut(err)
}
