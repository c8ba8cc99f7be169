package spillxds

import (
	"context"
	"math"
	"math/rand/v2"
	"time"
)

// The NACK of a response that follows a rejected one waits for nackFirst, then
// twice as long each time, at most nackLast.
const (
	nackFirst = 250 * time.Millisecond
	nackLast  = 4 * time.Second
)

// backoff is how long to wait between streams, as gRPC does.
type backoff struct {
	base, most time.Duration
	failures   int
}

// next returns the wait after a stream that lived for so long, and did work or
// not: a response was received. One that worked is replaced at once, unless it
// ended so soon that this would be a loop. u is uniform in [0, 1).
func (b *backoff) next(worked bool, lived time.Duration, u float64) time.Duration {
	if worked {
		b.failures = 0
		if lived >= b.base {
			return 0
		}
	}
	d := min(float64(b.base)*math.Pow(1.6, float64(b.failures)), float64(b.most))
	b.failures++
	return time.Duration(d * (0.8 + 0.4*u))
}

// retrying runs stream again and again until ctx ends.
func retrying(ctx context.Context, b backoff, stream func(context.Context) (worked bool)) {
	for ctx.Err() == nil {
		began := time.Now()
		worked := stream(ctx)
		pause(ctx, b.next(worked, time.Since(began), rand.Float64()))
	}
}

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// damper spaces NACKs that follow one another.
type damper struct {
	last time.Time
	n    int // since the last ACK
}

// due returns when a NACK decided on at the time now may be sent.
func (d *damper) due(now time.Time) time.Time {
	if d.n == 0 {
		return now
	}
	wait := min(nackFirst<<min(d.n-1, 10), nackLast)
	if at := d.last.Add(wait); at.After(now) {
		return at
	}
	return now
}

func (d *damper) nacked(now time.Time) { d.last, d.n = now, d.n+1 }
func (d *damper) acked()               { d.n = 0 }
