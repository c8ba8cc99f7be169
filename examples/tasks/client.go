package tasks

import (
	"net/http"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/spillhttp"
	"github.com/seed90641741/spillway/throttle"
)

func beforeClient() (*http.Client, error) {
	return &http.Client{}, nil
}

// A client that throttles, bounds and retries.
func afterClient() (*http.Client, error) {
	transport, err := spillhttp.NewTransport(spillhttp.TransportConfig{})
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: transport}, nil
}

// A view as of a circuit breaker: the state of each backend, and its changes.
func afterBreaker(changed func(throttle.StateChange)) (*http.Client, func() map[string]throttle.State, error) {
	transport, err := spillhttp.NewTransport(spillhttp.TransportConfig{Egress: egress.Config{
		Throttle: throttle.Config{OnStateChange: changed},
	}})
	if err != nil {
		return nil, nil, err
	}
	states := func() map[string]throttle.State {
		all := map[string]throttle.State{}
		for host, stats := range transport.Stats(time.Now()) {
			all[host] = stats.Throttle[spillway.Critical.Index()].State
		}
		return all
	}
	return &http.Client{Transport: transport}, states, nil
}
