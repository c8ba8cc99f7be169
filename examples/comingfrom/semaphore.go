package comingfrom

import (
	"context"

	"golang.org/x/sync/semaphore"

	"github.com/seed90641741/spillway/inflight"
)

func beforeSemaphore() func(ctx context.Context, job func()) error {
	places := semaphore.NewWeighted(2)
	return func(ctx context.Context, job func()) error {
		if err := places.Acquire(ctx, 1); err != nil {
			return err
		}
		defer places.Release(1)
		job()
		return nil
	}
}

func afterSemaphore() (func(ctx context.Context, job func()) error, error) {
	places, err := inflight.New(inflight.Config{MaxInFlight: 2, QueueDepth: 100})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, job func()) error {
		if err := places.Acquire(ctx); err != nil {
			return err
		}
		defer places.Release()
		job()
		return nil
	}, nil
}
