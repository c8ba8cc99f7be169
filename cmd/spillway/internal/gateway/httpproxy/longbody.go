package httpproxy

import (
	"context"
	"time"

	"github.com/seed90641741/spillway"
)

// A request whose body is still coming holds its place while the proxy waits for its client.
// Such requests therefore have no more than three quarters of the places of a queue: slow
// clients cannot take all of them from requests that are here as a whole.

// longLimits returns the limits of requests whose bodies are still coming.
func longLimits(l queueLimits) queueLimits {
	l.places = max(1, l.places-max(1, l.places/scarceShare))
	return l
}

// enterLong is enter for a request whose body is still coming. If it returns nil, leaveLong
// must be called.
func (q *queue) enterLong(ctx context.Context, c spillway.Criticality, customer string) error {
	began := time.Now()
	if err := q.long.enter(ctx, c, customer); err != nil {
		return err
	}
	err := q.enterAfter(ctx, c, customer, time.Since(began))
	if err != nil {
		q.long.leave()
	}
	return err
}

// leaveLong gives the place of a request back that entered with enterLong.
func (q *queue) leaveLong() {
	q.leave()
	q.long.leave()
}
