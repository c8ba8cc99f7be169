package drill

import (
	"net/http"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/internal/tokens"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/spillhttp"
)

// budgetCapacity is that of the bucket which [retry.Budgeted] makes for itself. The drill makes
// it instead, to see its level.
const budgetCapacity = tokens.EarningCalls * tokens.DefaultRatio

// protect puts Spillway in front of next, as any program would, and returns a
// func for the share of the retry budget that is left.
func protect(next http.RoundTripper, limit int, throttle spillway.Mode) (http.RoundTripper, func() float64, error) {
	bucket, err := budget.New(budget.Config{Capacity: budgetCapacity, Empty: true, Credit: tokens.CreditCalls * tokens.DefaultRatio})
	if err != nil {
		return nil, nil, err
	}
	strategy, err := retry.NewBudgeted(retry.BudgetedConfig{Budget: bucket})
	if err != nil {
		return nil, nil, err
	}
	transport, err := spillhttp.NewTransport(spillhttp.TransportConfig{
		Base:   next,
		Egress: egress.Config{MaxInFlight: limit, Retry: strategy, ThrottleMode: throttle},
	})
	if err != nil {
		return nil, nil, err
	}
	return transport, func() float64 { return bucket.Stats(time.Now()).Tokens / budgetCapacity }, nil
}
