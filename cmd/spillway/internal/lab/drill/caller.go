package drill

import (
	"context"
	"math"
	"net/http"
	"time"
)

// A caller makes one call, with all the attempts that it takes, and returns the
// status of the last answer. It returns once the body was read.
type caller interface {
	call(ctx context.Context, intended time.Time) (status int, err error)
}

// A naive caller is the usual one: each attempt may take the whole
// deadline, and what fails is tried again at once.
type naive struct {
	client  *http.Client
	wire    wire
	url     string
	timeout time.Duration // of each attempt
	retries int
}

func (n *naive) call(ctx context.Context, _ time.Time) (status int, err error) {
	for range 1 + n.retries {
		status, err = n.attempt(ctx)
		if err == nil && status < http.StatusInternalServerError && status != http.StatusTooManyRequests {
			break
		}
		if ctx.Err() != nil {
			break
		}
	}
	return status, err
}

func (n *naive) attempt(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, n.timeout)
	defer cancel()
	return n.wire.send(ctx, n.client, n.url)
}

// A protected caller leaves the attempts to its transport, and tells it by when
// the answer is needed.
type protected struct {
	client   *http.Client
	wire     wire
	url      string
	deadline time.Duration
}

func (p *protected) call(ctx context.Context, intended time.Time) (int, error) {
	ctx, cancel := context.WithDeadline(ctx, intended.Add(p.deadline))
	defer cancel()
	return p.wire.send(ctx, p.client, p.url)
}

// A crowd makes each call with the caller of its client.
type crowd []caller

func (c crowd) call(ctx context.Context, intended time.Time) (int, error) {
	return c[recordFrom(ctx).client].call(ctx, intended)
}

// transports has the transport of each client. Above them a probe sees all.
type transports []*http.Transport

func (w wire) transports(clients, conns int) transports {
	all := make(transports, clients)
	for i := range all {
		all[i] = w.transport(share(conns, clients))
	}
	return all
}

// share returns what each client gets of n: at least so much that one call can be
// on its way while another is answered.
func share(n, clients int) int {
	if clients == 1 {
		return n
	}
	return max(minInFlight, n/clients)
}

// RoundTrip implements [http.RoundTripper].
func (t transports) RoundTrip(r *http.Request) (*http.Response, error) {
	return t[recordFrom(r.Context()).client].RoundTrip(r)
}

func (t transports) close() {
	for _, one := range t {
		one.CloseIdleConnections()
	}
}

func connections(capacity float64, deadline time.Duration) int {
	return min(max(int(math.Ceil(4*capacity*deadline.Seconds())), 64), 4096)
}
