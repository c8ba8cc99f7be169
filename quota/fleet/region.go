package fleet

import (
	"context"
	"time"

	"github.com/seed90641741/spillway/quota"
)

// lease sets the rate of each account to what the quota over all regions grants in this region, for
// the demand and the use in the last dt seconds.
func (t *Table) lease(dt float64) {
	for _, all := range [][]*account{t.listed, t.unlisted, t.total} {
		for _, a := range all {
			d := quota.Demand{Customer: a.name, Wants: a.wants, Used: a.used, Elapsed: time.Duration(dt * float64(time.Second))}
			for class, w := range a.offered {
				d.Offered[class] = float64(w * dt)
			}
			lease := t.cfg.Above.Lease
			if a.name == allUnlisted {
				lease = t.cfg.Above.LeaseUnlisted
			}
			a.rate = min(a.rate, lease(t.clock, d).Rate)
		}
	}
}

// RunRegion does what [Run] does, for a task in one of several regions. While the task leads its
// region, it also syncs Config.Above with the board of all regions, once per interval of Above.
// That board may be far away or fail: calls and the tasks of the region never wait for it.
func RunRegion(ctx context.Context, f *Fleet, b, regions Board) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.syncRegion(ctx, regions)
	}()
	Run(ctx, f, b)
	<-done
}

// syncRegion syncs Above until ctx ends. It does not leave the board, because the next leader of
// the region continues under the same name.
func (f *Fleet) syncRegion(ctx context.Context, regions Board) {
	above := f.above()
	for {
		began := time.Now()
		if f.Stats(began).Leader {
			above.syncWithin(ctx, began, regions)
		}
		if !above.pause(ctx, began, above.interval()) {
			return
		}
	}
}

func (f *Fleet) above() *Fleet {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cfg.Above
}
