package comingfrom

import (
	"net/http"

	"github.com/go-kratos/aegis/circuitbreaker/sre"

	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/spillhttp"
	"github.com/seed90641741/spillway/throttle"
)

func beforeAegis() func(url string) (*http.Response, error) {
	breaker := sre.NewBreaker(sre.WithSuccess(0.5))
	return func(url string) (*http.Response, error) {
		if err := breaker.Allow(); err != nil {
			breaker.MarkFailed()
			return nil, err
		}
		resp, err := http.Get(url)
		if err != nil || resp.StatusCode >= 500 {
			breaker.MarkFailed()
		} else {
			breaker.MarkSuccess()
		}
		return resp, err
	}
}

func afterAegis() (func(url string) (*http.Response, error), error) {
	transport, err := spillhttp.NewTransport(spillhttp.TransportConfig{Egress: egress.Config{
		Throttle: throttle.Config{K: 2}, // 1/0.5, the default
	}})
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: transport}
	return client.Get, nil
}
