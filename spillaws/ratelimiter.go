package spillaws

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdkretry "github.com/aws/aws-sdk-go-v2/aws/retry"

	"github.com/seed90641741/spillway/internal/invalid"
	"github.com/seed90641741/spillway/retry"
)

// A RateLimiter lets the SDK's own retryers pay from a [retry.Budget]. It is for
// [sdkretry.StandardOptions], whose strategy, prices and earnings stay:
//
//	cfg.Retryer = func() aws.Retryer {
//		return retry.NewStandard(func(o *retry.StandardOptions) { o.RateLimiter = limiter })
//	}
//
// The prices are the SDK's, 5 to 14 tokens for a retry and 1 earned by a success.
// A budget that counts retries as one token, such as that of a [retry.Budgeted],
// needs RetryCost, RetryTimeoutCost and ThrottlingRetryCost of 1, and a
// NoRetryIncrement of 0, as there are no fractions. A call whose caller leaves while
// it waits has paid for a retry that is never sent, which a [Retryer] gives back.
//
// A RateLimiter is safe for concurrent use; make one with [NewRateLimiter].
type RateLimiter struct {
	budget retry.Budget
	key    string
}

var _ sdkretry.RateLimiter = (*RateLimiter)(nil)

// NewRateLimiter returns a RateLimiter that pays from the account key of b, which
// must not be nil. Budgets that keep no accounts ignore the key.
func NewRateLimiter(b retry.Budget, key string) (*RateLimiter, error) {
	if b == nil {
		return nil, invalid.Field("spillaws", "budget", nil, "set")
	}
	return &RateLimiter{budget: b, key: key}, nil
}

// GetToken pays for a retry, or returns a [retry.NotRetriedError] that says how much
// there is to pay with. If the retry succeeds, release gives back what it cost.
func (l *RateLimiter) GetToken(ctx context.Context, cost uint) (release func() error, err error) {
	if err := ctx.Err(); err != nil {
		return nil, &aws.RequestCanceledError{Err: err}
	}
	left, capacity, ok := l.budget.Withdraw(time.Now(), l.key, float64(cost))
	if !ok {
		return nil, &retry.NotRetriedError{Reason: retry.ReasonBudget, Tokens: left, Capacity: capacity, Cost: float64(cost)}
	}
	return func() error { return l.AddTokens(cost) }, nil
}

// AddTokens puts in what a success has earned. It always returns nil.
func (l *RateLimiter) AddTokens(n uint) error {
	l.budget.Deposit(l.key, float64(n))
	return nil
}
