package comingfrom

import (
	"context"

	"golang.org/x/time/rate"

	"github.com/seed90641741/spillway/ratelimit"
)

func beforeRate(ctx context.Context, jobs []func()) error {
	limiter := rate.NewLimiter(100, 50)
	for _, job := range jobs {
		if err := limiter.Wait(ctx); err != nil {
			return err
		}
		job()
	}
	return nil
}

func afterRate(ctx context.Context, jobs []func()) error {
	limiter, err := ratelimit.New(ratelimit.Config{Rate: 100, BurstSeconds: 0.5, QueueDepth: 1000})
	if err != nil {
		return err
	}
	for _, job := range jobs {
		if err := limiter.Wait(ctx); err != nil {
			return err
		}
		job()
	}
	return nil
}
