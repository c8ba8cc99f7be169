package comingfrom

import (
	"net/http"
	"time"

	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/spillhttp"
)

func afterSentinel(next http.Handler) (*spillhttp.Handler, error) {
	gates, err := ingress.New(ingress.Config{
		RateLimit:   ratelimit.Config{Rate: 1000}, // requests per second
		MaxInFlight: 200,
	})
	if err != nil {
		return nil, err
	}
	return spillhttp.NewHandler(next, spillhttp.HandlerConfig{Ingress: gates})
}

func afterConcurrencyLimits(next http.Handler) (*spillhttp.Handler, error) {
	return spillhttp.NewHandler(next, spillhttp.HandlerConfig{}) // the limit is found
}

func afterResilience4j() (*http.Client, error) {
	budgeted, err := retry.NewBudgeted(retry.BudgetedConfig{MaxAttempts: 3})
	if err != nil {
		return nil, err
	}
	transport, err := spillhttp.NewTransport(spillhttp.TransportConfig{Egress: egress.Config{Retry: budgeted, MaxInFlight: 25}})
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: transport, Timeout: 2 * time.Second}, nil
}
