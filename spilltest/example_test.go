package spilltest_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/spillhttp"
	"github.com/seed90641741/spillway/spilltest"
)

// TestHandler is an example of how the author of an adapter for a server tests it: here the
// http.Handler of package spillhttp. The work of a call travels in its context.
func TestHandler(t *testing.T) {
	spilltest.TestStack(t, func(t *testing.T, s spilltest.Setup) spilltest.Stack {
		config := func(s spilltest.Setup) ingress.Config {
			return ingress.Config{MaxInFlight: s.Limit, InFlightMode: s.Mode, Observer: s.Observer}
		}
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			work := r.Context().Value(workKey{}).(func(context.Context) error)
			if err := work(r.Context()); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		})
		server, err := ingress.New(config(s))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = server.Close() })
		h, err := spillhttp.NewHandler(handler, spillhttp.HandlerConfig{Ingress: server})
		if err != nil {
			t.Fatal(err)
		}
		return spilltest.Stack{
			Do: func(ctx context.Context, work func(context.Context) error) error {
				r := httptest.NewRequestWithContext(context.WithValue(ctx, workKey{}, work), http.MethodGet, "/", nil)
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				switch {
				case w.Code == http.StatusServiceUnavailable:
					return errUnavailable
				case w.Code != http.StatusOK || ctx.Err() != nil:
					return errors.New(w.Body.String())
				}
				return nil
			},
			InFlight: func() int { return server.Stats(time.Now()).Concurrency.Shared.InFlight },
			Update:   func(s spilltest.Setup) error { return server.Update(config(s)) },
			Rejected: func(err error) bool { return errors.Is(err, errUnavailable) },
		}
	})
}

var errUnavailable = errors.New("503")

// TestTransport is an example for an adapter for a client, the http.RoundTripper of package
// spillhttp. The work of a call runs where the backend would.
func TestTransport(t *testing.T) {
	spilltest.TestStack(t, func(t *testing.T, s spilltest.Setup) spilltest.Stack {
		config := func(s spilltest.Setup) egress.Config {
			return egress.Config{MaxRequests: s.Limit, InflightMode: s.Mode, Observer: s.Observer}
		}
		transport, err := spillhttp.NewTransport(spillhttp.TransportConfig{Base: backend{}, Egress: config(s)})
		if err != nil {
			t.Fatal(err)
		}
		return spilltest.Stack{
			Do: func(ctx context.Context, work func(context.Context) error) error {
				r, err := http.NewRequestWithContext(context.WithValue(ctx, workKey{}, work), http.MethodPost, "http://backend/", nil)
				if err != nil {
					return err
				}
				resp, err := transport.RoundTrip(r)
				if err != nil {
					return err
				}
				return resp.Body.Close()
			},
			InFlight: func() (n int) {
				for _, host := range transport.Stats() {
					n += int(host.Inflight.InFlight)
				}
				return n
			},
			Update: func(s spilltest.Setup) error { return transport.Update(config(s)) },
		}
	})
}

type workKey struct{}

// backend is an [http.RoundTripper] that runs the work of a call.
type backend struct{}

func (backend) RoundTrip(r *http.Request) (*http.Response, error) {
	work := r.Context().Value(workKey{}).(func(context.Context) error)
	if err := work(r.Context()); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
}
