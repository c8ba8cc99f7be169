package spillaws

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/seed90641741/spillway/retry"
)

// wait waits for d. If ctx ends first, it returns what the SDK returns.
func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	return sleep(ctx, d)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return &aws.RequestCanceledError{Err: ctx.Err()}
	}
}

// hold waits for the LongPollDelay of why, on behalf of a caller that will call again at once,
// and returns why, or the error of ctx if that has ended meanwhile.
func hold(ctx context.Context, why error) error {
	rejected, ok := errors.AsType[*retry.NotRetriedError](why)
	if !ok || rejected.LongPollDelay <= 0 {
		return why
	}
	if err := wait(ctx, rejected.LongPollDelay); err != nil {
		return err
	}
	return why
}
