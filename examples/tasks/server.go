package tasks

import (
	"net/http"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/load"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/spillhttp"
)

func beforeServer(mux *http.ServeMux) (http.Handler, error) {
	return mux, nil
}

// A protected server with a health endpoint.
func afterServer(mux *http.ServeMux) (http.Handler, error) {
	return spillhttp.NewHandler(mux, spillhttp.HandlerConfig{HealthPaths: []string{"/healthz"}})
}

// A signal of the program itself: a queue of at most 100 jobs.
func afterSignal(mux *http.ServeMux, jobs func() int) (http.Handler, error) {
	gates, err := ingress.New(ingress.Config{Load: load.Config{Signals: []load.Signal{
		{Name: "jobs", Read: func() float64 { return float64(jobs()) / 100 }},
	}}})
	if err != nil {
		return nil, err
	}
	return spillhttp.NewHandler(mux, spillhttp.HandlerConfig{Ingress: gates})
}

// A quota of 5 requests per second for each customer.
func afterQuota(mux *http.ServeMux) (http.Handler, error) {
	limits, err := quota.NewLocal(quota.LocalConfig{DefaultLimit: quota.Limit{Rate: 5}})
	if err != nil {
		return nil, err
	}
	gates, err := ingress.New(ingress.Config{Quota: quota.Config{Allocator: limits}})
	if err != nil {
		return nil, err
	}
	return spillhttp.NewHandler(mux, spillhttp.HandlerConfig{Ingress: gates, Classify: func(r *http.Request) spillway.Call {
		user, _, _ := r.BasicAuth()
		return spillway.Call{Customer: user}
	}})
}
