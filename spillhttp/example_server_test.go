package spillhttp_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/load"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/spillhttp"
)

// A server that keeps serving what it can, whatever it is asked for. Calls that it
// makes with the context of a request inherit its criticality and its deadline.
func ExampleHandler_Serve() {
	search := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "as", spillway.CriticalityFrom(r.Context()))
	})
	handler, err := spillhttp.NewHandler(search, spillhttp.HandlerConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer handler.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go handler.Serve(server, listener) // or server.Serve(listener), without early rejection
	defer server.Close()

	fmt.Println(get("http://"+listener.Addr().String(), "X-Request-Criticality", "SHEDDABLE"))
	// Output: 200
}

// get returns the status of the answer to a request.
func get(url string, headers ...string) int {
	req, _ := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// A handler whose own call was rejected says so, and that it was the one to retry.
func ExampleReject() {
	backend := func() error { return spillway.ErrRejected } // as a call by a Transport may end
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := backend(); errors.Is(err, spillway.ErrRejected) {
			spillhttp.Reject(w, r, ingress.Rejection{Outcome: spillway.OutcomeOverloaded, DontRetry: true})
			return
		}
		fmt.Fprintln(w, "served")
	}))
	defer server.Close()
	fmt.Println(get(server.URL))
	// Output: 503
}

// A signal of the user's own: a queue that should not hold more than 100 jobs.
func ExampleNewHandler_signal() {
	var jobs atomic.Int64
	gates, err := ingress.New(ingress.Config{Load: load.Config{Signals: []load.Signal{
		{Name: "jobs", Read: func() float64 { return float64(jobs.Load()) / 100 }},
	}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer gates.Close()
	handler, err := spillhttp.NewHandler(http.NotFoundHandler(), spillhttp.HandlerConfig{
		Ingress: gates, HealthPaths: []string{"/healthz"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := httptest.NewServer(handler)
	defer server.Close()

	jobs.Store(93)
	fmt.Println(get(server.URL, "X-Request-Criticality", "SHEDDABLE"), get(server.URL), get(server.URL+"/healthz"))
	// Output: 503 404 404
}

// A quota for each customer: five requests a second, and fifty for paying customers.
func ExampleNewHandler_quota() {
	limits, err := quota.NewLocal(quota.LocalConfig{
		Customers:    map[string]quota.Limit{"alice": {Rate: 50}},
		DefaultLimit: quota.Limit{Rate: 5},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	gates, err := ingress.New(ingress.Config{Quota: quota.Config{Allocator: limits}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer gates.Close()
	handler, err := spillhttp.NewHandler(http.NotFoundHandler(), spillhttp.HandlerConfig{
		Ingress: gates,
		Classify: func(r *http.Request) spillway.Call {
			user, _, _ := r.BasicAuth() // whoever authenticates comes before the Handler
			return spillway.Call{Key: r.URL.Path, Customer: user}
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := httptest.NewServer(handler)
	defer server.Close()

	count := func(authorization string) (served int) {
		for range 10 {
			if get(server.URL, "Authorization", authorization) == http.StatusNotFound {
				served++
			}
		}
		return served
	}
	fmt.Println("bob", count("Basic Ym9iOg==") < 10, "alice", count("Basic YWxpY2U6"))
	// Output: bob true alice 10
}
