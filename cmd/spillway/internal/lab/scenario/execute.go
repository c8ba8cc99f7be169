package scenario

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/seed90641741/spillway/sim"
)

// Progress receives the progress of run i.
type Progress func(i int, at time.Duration)

// Execute runs the simulations, one per processor at a time, and returns their results in
// order. The results do not depend on the number of processors.
func Execute(ctx context.Context, runs []Run, progress Progress) ([]*sim.Result, error) {
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
			var err error
			if results[i], err = runs[i].execute(ctx, i, progress); err != nil {
				cancel(err)
			}
		})
	}
	workers.Wait()
	return results, context.Cause(ctx)
}

func (r *Run) execute(ctx context.Context, i int, progress Progress) (*sim.Result, error) {
	c := r.Config
	if progress != nil {
		c.Progress = func(at time.Duration) { progress(i, at) }
	}
	s, err := sim.New(c)
	if err != nil {
		return nil, err
	}
	return s.Run(ctx)
}
