package spillhttp_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/spillhttp"
	"github.com/seed90641741/spillway/spilltest"
)

// TestHandlerContract is an example of how the author of an adapter for a server tests it. The
// work of a call travels in its context.
func TestHandlerContract(t *testing.T) {
	spilltest.TestStack(t, func(t *testing.T, s spilltest.Setup) spilltest.Stack {
		config := func(s spilltest.Setup) ingress.Config {
			return ingress.Config{MaxInFlight: s.Limit, InFlightMode: s.Mode, Observer: s.Observer}
		}
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := workOf(r); err != nil {
				w.WriteHeader(http.StatusInternalServerError)
			}
		})
		server, err := ingress.New(config(s))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = server.Close() })
		protected, err := spillhttp.NewHandler(handler, spillhttp.HandlerConfig{Ingress: server})
		if err != nil {
			t.Fatal(err)
		}
		stack := spilltest.Stack{
			Do:       requests(protected),
			Bare:     requests(handler),
			InFlight: func() int { return server.Stats(time.Now()).Concurrency.Shared.InFlight },
			Update:   func(s spilltest.Setup) error { return server.Update(config(s)) },
			Rejected: func(err error) bool { return errors.Is(err, errUnavailable) },
		}
		stack.Allocations.Served = 1   // a context and a request, in one
		stack.Allocations.Rejected = 1 // the values of two headers
		return stack
	})
}

var (
	errUnavailable = errors.New("503")
	errStatus      = errors.New("another status than 200")
)

// requests makes calls to a handler.
func requests(h http.Handler) spilltest.Do {
	return func(ctx context.Context, work func(context.Context) error) error {
		r := httptest.NewRequestWithContext(context.WithValue(ctx, workKey{}, work), http.MethodGet, "/", nil)
		w := answer{header: make(http.Header), status: http.StatusOK}
		h.ServeHTTP(&w, r)
		switch {
		case w.status == http.StatusServiceUnavailable:
			return errUnavailable
		case w.status != http.StatusOK:
			return errStatus
		}
		return ctx.Err()
	}
}

// An answer is an [http.ResponseWriter] that keeps the status only.
type answer struct {
	header http.Header
	status int
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(p []byte) (int, error) { return len(p), nil }

// TestTransportContract is an example for an adapter for a client. The work of a call runs
// where the backend would.
func TestTransportContract(t *testing.T) {
	spilltest.TestStack(t, func(t *testing.T, s spilltest.Setup) spilltest.Stack {
		config := func(s spilltest.Setup) egress.Config {
			return egress.Config{MaxInFlight: s.Limit, InFlightMode: s.Mode, Observer: s.Observer}
		}
		transport, err := spillhttp.NewTransport(spillhttp.TransportConfig{Base: backend{}, Egress: config(s)})
		if err != nil {
			t.Fatal(err)
		}
		return spilltest.Stack{
			Do:   send(transport),
			Bare: send(backend{}),
			InFlight: func() (n int) {
				for _, host := range transport.Stats(time.Now()) {
					n += host.InFlight.InFlight
				}
				return n
			},
			Update: func(s spilltest.Setup) error { return transport.Update(config(s)) },
		}
	})
}

func TestTransportContractOfRetries(t *testing.T) {
	spilltest.TestRetries(t, func(t *testing.T, s retry.Strategy) spilltest.Do {
		config := egress.Config{Retry: s, ThrottleMode: spillway.ModeOff}
		transport, err := spillhttp.NewTransport(spillhttp.TransportConfig{Base: backend{}, Egress: config})
		if err != nil {
			t.Fatal(err)
		}
		return send(transport)
	})
}

// send makes calls through a transport.
func send(rt http.RoundTripper) spilltest.Do {
	return func(ctx context.Context, work func(context.Context) error) error {
		r, err := http.NewRequestWithContext(context.WithValue(ctx, workKey{}, work), http.MethodPost, "http://backend/", nil)
		if err != nil {
			return err
		}
		resp, err := rt.RoundTrip(r)
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			err = errStatus
		}
		return errors.Join(err, resp.Body.Close())
	}
}

type workKey struct{}

func workOf(r *http.Request) error {
	return r.Context().Value(workKey{}).(func(context.Context) error)(r.Context())
}

// backend is an [http.RoundTripper] that runs the work of a call.
type backend struct{}

func (backend) RoundTrip(r *http.Request) (*http.Response, error) {
	resp := &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}
	switch err := workOf(r); {
	case errors.Is(err, spilltest.ErrBusy):
		resp.StatusCode = http.StatusServiceUnavailable
	case err != nil:
		return nil, err
	}
	return resp, nil
}
