package comingfrom

import (
	"fmt"
	"net/http"

	"github.com/sony/gobreaker/v2"

	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/spillhttp"
	"github.com/seed90641741/spillway/throttle"
)

func beforeBreaker(log func(string)) func(url string) (*http.Response, error) {
	breaker := gobreaker.NewCircuitBreaker[*http.Response](gobreaker.Settings{
		Name: "users",
		OnStateChange: func(name string, from, to gobreaker.State) {
			log(fmt.Sprintf("%s: %v to %v", name, from, to))
		},
	})
	return func(url string) (*http.Response, error) {
		return breaker.Execute(func() (*http.Response, error) {
			resp, err := http.Get(url)
			if err == nil && resp.StatusCode >= 500 {
				resp.Body.Close()
				return nil, fmt.Errorf("status %d", resp.StatusCode)
			}
			return resp, err
		})
	}
}

func afterBreaker(log func(string)) (func(url string) (*http.Response, error), error) {
	transport, err := spillhttp.NewTransport(spillhttp.TransportConfig{Egress: egress.Config{
		Throttle: throttle.Config{OnStateChange: func(s throttle.StateChange) {
			log(fmt.Sprintf("%s: %v to %v", s.Backend, s.From, s.To))
		}},
	}})
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: transport}
	return client.Get, nil
}
