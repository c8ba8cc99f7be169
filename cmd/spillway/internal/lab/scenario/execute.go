package scenario

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/seed90641741/spillway/sim"
)

// Execute runs the simulations, one per processor at a time, and returns their results in
// order. The results do not depend on the number of processors. If progress is not nil, it
// receives the progress of each run i, from several goroutines.
func Execute(ctx context.Context, runs []Run, progress func(i int, at time.Duration)) ([]*sim.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	results := make([]*sim.Result, len(runs))
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	var workers sync.WaitGroup
	for i := range runs {
		free <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		workers.Go(func() {
			defer func() { <-free }()
			c := runs[i].Config
			if progress != nil {
				c.Progress = func(at time.Duration) { progress(i, at) }
			}
			s, err := sim.New(c)
			if err == nil {
				results[i], err = s.Run(ctx)
			}
			if err != nil {
				cancel(err)
			}
		})
	}
	workers.Wait()
	return results, context.Cause(ctx)
}
