package docs

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"runtime"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/connlimit"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/spillhttp"
	"github.com/seed90641741/spillway/spillslog"
)

func server(ctx context.Context, mux *http.ServeMux, listener net.Listener) error {
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if ctx.Err() != nil {
			http.Error(w, "draining", http.StatusServiceUnavailable)
		}
	})
	handler, err := spillhttp.NewHandler(mux, spillhttp.HandlerConfig{HealthPaths: []string{"/healthz", "/readyz"}})
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- handler.Serve(server, listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done(): // after SIGTERM
	}
	time.Sleep(5 * time.Second) // load balancers see /readyz fail
	end, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return errors.Join(server.Shutdown(end), handler.Close())
}

func encrypted(handler *spillhttp.Handler, server *http.Server, listener net.Listener) error {
	return handler.ServeTLS(server, listener, "", "") // with the certificate of server.TLSConfig
}

func limited(gates *ingress.Server, server *http.Server, listener net.Listener) error {
	limited, err := connlimit.NewListener(listener, connlimit.Config{
		Work: gates.Work, // as above; gates is the ingress.Server
		Rate: ratelimit.Config{
			Rate:         800 * float64(runtime.GOMAXPROCS(0)), // handshakes take a quarter of the processors at most
			BurstSeconds: 0.1,
		},
	})
	if err != nil {
		return err
	}
	return server.ServeTLS(limited, "", "")
}

func client() (*http.Client, error) {
	transport, err := spillhttp.NewTransport(spillhttp.TransportConfig{})
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: transport, Timeout: 10 * time.Second}, nil
}

// call makes a call with a class.
func call(ctx context.Context, client *http.Client, url string) error {
	ctx = spillway.WithCriticality(ctx, spillway.SheddablePlus) // batch work
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if errors.Is(err, spillway.ErrRejected) {
		fmt.Println(err) // rejected by this client, not by the server
	}
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// observed returns a handler that rejects nothing.
func observed(mux http.Handler, classify func(*http.Request) spillway.Call) (*spillhttp.Handler, error) {
	observer, err := spillslog.New(spillslog.Config{})
	if err != nil {
		return nil, err
	}
	config := ingress.Config{
		ShedMode:      spillway.ModeObserve,
		RateLimitMode: spillway.ModeObserve,
		QuotaMode:     spillway.ModeObserve,
		InFlightMode:  spillway.ModeObserve,
		Observer:      observer,
	}
	gates, err := ingress.New(config)
	if err != nil {
		return nil, err
	}
	return spillhttp.NewHandler(mux, spillhttp.HandlerConfig{
		HealthPaths: []string{"/healthz"},
		Classify:    classify,
		Ingress:     gates,
	})
}

// logged returns gates that log each rejection.
func logged() (*ingress.Server, error) {
	return ingress.New(ingress.Config{Observer: spillway.ObserverFunc(func(e spillway.Event) {
		if e.Rejected {
			log.Printf("%v %q: %v", e.Call.Criticality, e.Call.Key, e.Err)
		}
	})})
}

func explain(err error) {
	if rejected, ok := errors.AsType[*spillway.RejectedError](err); ok {
		log.Printf("reason %v, %v", rejected.Reason, rejected)
	}
}

// enforce has the shedder of a running server reject requests.
func enforce(gates *ingress.Server, config ingress.Config) error {
	config.ShedMode = spillway.ModeEnforce // the other gates still observe
	return gates.Update(config)
}
