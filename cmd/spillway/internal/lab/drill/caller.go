package drill

import (
	"context"
	"math"
	"net/http"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/load"
)

// A caller makes one call, with all the attempts that it takes, and returns the
// status of the last answer. It returns once the body was read.
type caller func(ctx context.Context, intended time.Time) (status int, err error)

// An endpoint is where a client sends its calls.
type endpoint struct {
	client   *http.Client
	wire     load.Format
	url      string
	deadline time.Duration
}

// call is the protected caller: it leaves the attempts to its transport, and tells it by when
// the answer is needed.
func (e endpoint) call(ctx context.Context, intended time.Time) (int, error) {
	ctx, cancel := context.WithDeadline(ctx, intended.Add(e.deadline))
	defer cancel()
	answer, err := e.wire.Send(ctx, e.client, e.url)
	if r := recordFrom(ctx); r != nil {
		r.work = answer.Work
	}
	return answer.Status, err
}

// naive returns the usual caller: each attempt may take the whole deadline, and what fails is
// tried again at once.
func (e endpoint) naive(retries int) caller {
	return func(ctx context.Context, _ time.Time) (status int, err error) {
		for range 1 + retries {
			status, err = e.call(ctx, time.Now())
			if err == nil && status < http.StatusInternalServerError && status != http.StatusTooManyRequests || ctx.Err() != nil {
				break
			}
		}
		return status, err
	}
}

// transports has the transport of each client. Above them a probe sees all.
type transports []*http.Transport

func transportsOf(w load.Format, clients, conns int) transports {
	all := make(transports, clients)
	for i := range all {
		all[i] = w.Transport(share(conns, clients))
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
