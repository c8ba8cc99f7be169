package queue

import (
	"context"
	"sync"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
)

// A Job is what a worker does.
type Job struct {
	Kind        string // a few values: each has a separate limit
	Criticality spillway.Criticality
	Run         func(context.Context) error
}

// Work does jobs in n goroutines until the channel is closed or ctx has ended, and returns then. A worker whose job was rejected waits
// for the time that the rejection states, takes no other job meanwhile, and then asks for the same one again. failed is called for each
// failed job.
func Work(ctx context.Context, server *ingress.Server, n int, jobs <-chan Job, failed func(Job, error)) {
	var workers sync.WaitGroup
	for range n {
		workers.Go(func() {
			for job := range jobs {
				if err := do(ctx, server, job); err != nil {
					failed(job, err)
				}
			}
		})
	}
	workers.Wait()
}

// do does a job when the gates admit it.
func do(ctx context.Context, server *ingress.Server, job Job) error {
	for {
		why, err := server.Do(ctx, spillway.Call{Key: job.Kind, Criticality: job.Criticality}, job.Run)
		if !why.Rejected() || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(why.RetryAfter):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
