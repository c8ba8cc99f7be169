package comingfrom

import (
	"net/http"
	"time"

	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/failsafehttp"

	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/spillhttp"
)

func beforeFailsafe() *http.Client {
	retries := failsafehttp.NewRetryPolicyBuilder().WithMaxRetries(2).WithBackoff(100*time.Millisecond, 10*time.Second).Build()
	breaker := circuitbreaker.NewWithDefaults[*http.Response]()
	limit := bulkhead.New[*http.Response](64)
	return &http.Client{Transport: failsafehttp.NewRoundTripper(nil, retries, breaker, limit)}
}

func afterFailsafe() (*http.Client, error) {
	transport, err := spillhttp.NewTransport(spillhttp.TransportConfig{Egress: egress.Config{MaxInFlight: 64}})
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: transport}, nil
}
