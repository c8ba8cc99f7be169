package drill

import (
	"context"
	"io"
	"math"
	"net/http"
	"time"

	"github.com/seed90641741/spillway"
)

// A caller makes one call, with all the attempts that it takes, and returns the
// status of the last answer. It returns once the body was read.
type caller interface {
	call(ctx context.Context, intended time.Time) (status int, err error)
}

// A naive caller is the usual one: each attempt may take as long as the
// deadline, and what fails is tried again at once.
type naive struct {
	client  *http.Client
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
	return get(ctx, n.client, n.url)
}

// A protected caller leaves the attempts to its transport, and tells it by when
// the answer is needed.
type protected struct {
	client   *http.Client
	url      string
	deadline time.Duration
}

func (p *protected) call(ctx context.Context, intended time.Time) (int, error) {
	ctx, cancel := context.WithDeadline(ctx, intended.Add(p.deadline))
	defer cancel()
	return get(ctx, p.client, p.url)
}

func get(ctx context.Context, client *http.Client, url string) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	// An ordinary caller labels its calls by hand, just as Spillway would.
	if class, ok := spillway.LookupCriticality(ctx); ok {
		req.Header.Set("X-Request-Criticality", class.String())
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// A crowd makes each call with the caller of its client.
type crowd []caller

func (c crowd) call(ctx context.Context, intended time.Time) (int, error) {
	return c[recordFrom(ctx).client].call(ctx, intended)
}

// transports has the transport of each client. Above them a probe sees all.
type transports []*http.Transport

func newTransports(clients, conns int) transports {
	all := make(transports, clients)
	for i := range all {
		all[i] = newTransport(share(conns, clients))
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

// newTransport returns the transport below both callers: keep-alive, a pool
// that never closes a connection which could be used again, and as many
// connections as calls that the backend could finish in four deadlines. Without
// such a bound an overloaded caller opens connections until there are no ports
// left, which would say little about the backend.
func newTransport(conns int) *http.Transport {
	return &http.Transport{
		MaxConnsPerHost:     conns,
		MaxIdleConnsPerHost: conns,
		IdleConnTimeout:     time.Minute,
		DisableCompression:  true,
	}
}

func connections(capacity float64, deadline time.Duration) int {
	return min(max(int(math.Ceil(4*capacity*deadline.Seconds())), 64), 4096)
}
