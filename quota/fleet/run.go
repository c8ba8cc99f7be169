package fleet

import (
	"context"
	"math/rand/v2"
	"time"
)

// Run calls [Fleet.Sync] once per interval until ctx ends. Then it calls [Fleet.Leave], which takes
// one second at most. The first call comes at once, and the second at a random time within the
// interval, so that tasks that start together do not report together. Each further interval varies
// by 5 %. If demand jumps, Run waits for only a quarter of the interval. It gives up a round trip
// after two intervals. Stats counts errors.
func Run(ctx context.Context, f *Fleet, b Board) {
	for first := true; ; first = false {
		began := time.Now()
		f.syncWithin(ctx, began, b)
		wait := f.interval()
		if first {
			wait = rand.N(wait)
		} else {
			wait += rand.N(wait/10) - wait/20
		}
		if !f.pause(ctx, began, wait) {
			break
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = f.Leave(ctx, b) // if it fails, the board notices after Hold
}

// syncWithin calls Sync, and gives it up after two intervals.
func (f *Fleet) syncWithin(ctx context.Context, now time.Time, b Board) {
	ctx, cancel := context.WithTimeout(ctx, 2*f.interval())
	defer cancel()
	_ = f.Sync(ctx, now, b) // counted in Stats
}

// pause waits until a time after began, or until demand is urgent. It returns false if ctx ends.
func (f *Fleet) pause(ctx context.Context, began time.Time, wait time.Duration) bool {
	regular := time.NewTimer(time.Until(began.Add(wait)))
	defer regular.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-regular.C:
		return ctx.Err() == nil // select may choose this case although ctx has ended
	case <-time.After(time.Until(began.Add(min(wait, f.interval()/4)))):
	}
	select {
	case <-ctx.Done():
		return false
	case <-regular.C:
	case <-f.urgent:
	}
	return ctx.Err() == nil
}

func (f *Fleet) interval() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cfg.Interval
}
