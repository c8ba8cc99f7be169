package upstream

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/message"
)

// Requests that must not be repeated, and kept connections. A request that is sent while the endpoint closes the connection is
// lost, and it is unknown whether it was processed: net/http sends it again only if it may be repeated. So a request that may
// not be takes a new connection, or one that was used a moment ago.

// recently is how long ago a connection was used that still takes any request: endpoints keep connections for at least two seconds
// by default (gunicorn two, Node.js and Apache five).
const recently = time.Second

// remembered is how long it counts that an endpoint has closed a connection.
const remembered = time.Minute

// errLongIdle makes net/http send a request by another connection.
var errLongIdle = errors.New("the connection was idle for too long to send a request that must not be repeated")

var epoch = time.Now().Add(-time.Hour)

// sinceEpoch returns the time. It is never zero.
func sinceEpoch() int64 { return int64(time.Since(epoch)) }

// A keeping is how long an endpoint keeps idle connections, as far as it has shown that.
type keeping struct {
	shortest atomic.Int64 // the shortest time after which it has closed one
	at       atomic.Int64 // when that was; 0: it has closed none
}

// closed notes that the endpoint has closed a connection on which nothing had moved for a time.
func (k *keeping) closed(now int64, idle time.Duration) {
	if !k.known(now) || int64(idle) < k.shortest.Load() {
		k.shortest.Store(int64(idle))
		k.at.Store(now)
	}
}

func (k *keeping) known(now int64) bool {
	at := k.at.Load()
	return at > 0 && time.Duration(now-at) < remembered
}

// open reports whether a connection that was idle for a time is certainly still open: half the time after which the endpoint
// closes connections has not passed.
func (k *keeping) open(now int64, idle time.Duration) bool {
	if k.known(now) && idle >= time.Duration(k.shortest.Load()/2) {
		return false
	}
	return idle < recently
}

// repeats reports whether net/http sends a request again if its connection turns out to be closed.
func repeats(r *http.Request) bool {
	if r.Body != nil && r.Body != http.NoBody && r.GetBody == nil {
		return false
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return r.Header["Idempotency-Key"] != nil || r.Header["X-Idempotency-Key"] != nil
}

// replayed is how much of a body is kept until its request has a connection: what net/http reads before it writes anything.
const replayed = 64 << 10

// replayable returns r with a body that can be read again from its beginning until settle is called: a connection may turn out to be
// one that must not be used when a part of the body was read.
func replayable(r *http.Request) (again *http.Request, settle func()) {
	if r.Body == nil || r.Body == http.NoBody || r.GetBody != nil {
		return r, func() {}
	}
	replay, settled := message.NewReplay(r.Body, replayed), new(atomic.Bool)
	kept := *r
	kept.GetBody = func() (io.ReadCloser, error) {
		pass, err := replay.Open()
		return &once{pass, r.Body, settled}, err
	}
	kept.Body, _ = kept.GetBody() // nothing was read yet: cannot fail
	return &kept, func() {
		replay.Settle()
		settled.Store(true)
	}
}

// once is a body that closes its source when there is no other attempt.
type once struct {
	io.ReadCloser
	source  io.Closer
	settled *atomic.Bool
}

// Close implements [io.Closer].
func (b *once) Close() error {
	if b.settled.Load() {
		defer b.source.Close()
	}
	return b.ReadCloser.Close()
}
