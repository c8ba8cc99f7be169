package spillhttp

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/throttle"
)

// undaunted is a client without a throttle, whose retries are limited by their attempts alone.
func undaunted() egress.Config {
	return egress.Config{
		ThrottleMode: spillway.ModeOff,
		Retry:        must(retry.NewBudgeted(retry.BudgetedConfig{Budget: retry.Unlimited{}})),
	}
}

// A layer is a service that calls the one below it.
type layer struct {
	seen atomic.Int64
	http.Handler
}

func (l *layer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.seen.Add(1)
	l.Handler.ServeHTTP(w, r)
}

// inProcess sends requests to a Handler.
func inProcess(h http.Handler) baseFunc {
	return func(r *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		in := r.Clone(r.Context()) // as without the values of the caller's context
		in = in.WithContext(context.Background())
		in.RequestURI, in.RemoteAddr = "/", "127.0.0.1:1"
		h.ServeHTTP(w, in)
		return w.Result(), nil
	}
}

// chain returns layers that each call the next, from the top, and the last one bottom.
func chain(t *testing.T, n int, how func(client *Transport) http.Handler, bottom http.Handler) []*layer {
	t.Helper()
	all := make([]*layer, n)
	all[n-1] = &layer{Handler: mustHandler(t, bottom, ingress.Config{Shed: patient}, HandlerConfig{})}
	for i := n - 2; i >= 0; i-- {
		client := mustTransport(t, TransportConfig{Base: inProcess(all[i+1]), Egress: undaunted()})
		all[i] = &layer{Handler: mustHandler(t, how(client), ingress.Config{Shed: patient}, HandlerConfig{})}
	}
	return all
}

// The ways in which handlers hand up what they got.
var handsUp = map[string]func(*Transport) http.Handler{
	"status": func(client *Transport) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			resp, err := client.RoundTrip(r.Clone(r.Context()))
			if err != nil {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			defer resp.Body.Close()
			w.WriteHeader(resp.StatusCode)
		})
	},
	"its own 500": func(client *Transport) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			resp, err := client.RoundTrip(r.Clone(context.WithoutCancel(r.Context())))
			if err == nil {
				resp.Body.Close()
			}
			if err != nil || resp.StatusCode != http.StatusOK {
				http.Error(w, "sorry", http.StatusInternalServerError)
			}
		})
	},
	"a reverse proxy": func(client *Transport) http.Handler {
		p := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "below"})
		p.Transport = client
		return p
	},
}

// TestOneLayerRetries: of three layers, only the one above a bottom that always fails
// retries, however the failure looks and is handed up.
func TestOneLayerRetries(t *testing.T) {
	for how, handler := range handsUp {
		for name, bottom := range map[string]http.HandlerFunc{
			"503":               func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
			"500":               func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
			"elsewhere":         func(w http.ResponseWriter, r *http.Request) { Reject(w, r, ingress.Rejection{RetryAfter: 1e9}) },
			"retry, whatever":   invites(headerShouldRetry, "true"),
			"a retryable nack":  invites(headerNack, "true"),
			"a stripe invite":   invites(headerStripe, "true"),
			"back at once":      invites(headerRetryAfterMs, "0"),
			"junk":              invites(headerScope, "\x7f\xff;everything", headerRetryAfter, "-1"),
			"a time in decades": invites(headerScope, "task", headerRetryAfter, "999999999999999999999"),
		} {
			t.Run(how+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					all := chain(t, 3, handler, bottom)
					top := mustTransport(t, TransportConfig{Base: inProcess(all[0]), Egress: undaunted()})
					resp, err := top.RoundTrip(newGet(t, "http://top/"))
					if err != nil {
						t.Fatal(err)
					}
					resp.Body.Close()
					if a, b, c := all[0].seen.Load(), all[1].seen.Load(), all[2].seen.Load(); a != 1 || b != 1 || c != 3 {
						t.Errorf("%d %v: %d, %d and %d requests from top to bottom", resp.StatusCode, resp.Header, a, b, c)
					}
					if resp.Header.Get(headerShouldRetry) != "false" || resp.Header.Get(headerScope) == "task" {
						t.Errorf("the last answer says %v", resp.Header)
					}
				})
			})
		}
	}
}

func invites(header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header()[header[i]] = header[i+1 : i+2]
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// TestOneLayerSucceeds: with a bottom that fails half of the time three layers have as
// many successes as one that retries, and the other layers see one request for each call.
func TestOneLayerSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 4000
		random := rand.New(rand.NewPCG(7, 7))
		all := chain(t, 3, handsUp["status"], http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if random.Float64() < 0.5 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}))
		top := mustTransport(t, TransportConfig{Base: inProcess(all[0]), Egress: undaunted()})
		served := 0
		for range calls {
			resp, err := top.RoundTrip(newGet(t, "http://top/"))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				served++
			}
		}
		// Three attempts: 7/8, with a standard deviation of 0.0052; and 1 + 1/2 + 1/4 attempts.
		if share := float64(served) / calls; share < .859 || share > .891 {
			t.Errorf("%.4f are served, want 0.875", share)
		}
		if a, b, c := all[0].seen.Load(), all[1].seen.Load(), float64(all[2].seen.Load())/calls; a != calls || b != calls || c < 1.69 || c > 1.81 {
			t.Errorf("%d, %d and %.3f times as many requests", a, b, c)
		}
	})
}

// TestMark: which calls mark the request that they are made for, and which answers say so.
func TestMark(t *testing.T) {
	down := baseFunc(func(r *http.Request) (*http.Response, error) { return answer(r, 503, ""), nil })
	up := baseFunc(func(r *http.Request) (*http.Response, error) { return answer(r, 200, ""), nil })
	stuck := baseFunc(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	full := undaunted()
	full.MaxInFlight = 1
	closed := egress.Config{Throttle: throttle.Config{Rand: func() float64 { return 0 }, MinRequests: -1}}
	call := func(client *Transport, r *http.Request) error {
		resp, err := client.RoundTrip(r.Clone(r.Context()))
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	status := func(w http.ResponseWriter, code int) { w.WriteHeader(code) }
	for name, row := range map[string]struct {
		serve func(t *testing.T, w http.ResponseWriter, r *http.Request)
		final bool
	}{
		"exhausted": {func(t *testing.T, w http.ResponseWriter, r *http.Request) {
			_ = call(mustTransport(t, TransportConfig{Base: down, Egress: undaunted()}), r)
			status(w, 502)
		}, true},
		"exhausted, and a success": {func(t *testing.T, w http.ResponseWriter, r *http.Request) {
			_ = call(mustTransport(t, TransportConfig{Base: down, Egress: undaunted()}), r)
			status(w, 200)
		}, false},
		"exhausted, and no success to be had by retrying": {func(t *testing.T, w http.ResponseWriter, r *http.Request) {
			_ = call(mustTransport(t, TransportConfig{Base: down, Egress: undaunted()}), r)
			status(w, 404)
		}, false},
		"one of a batch": {func(t *testing.T, w http.ResponseWriter, r *http.Request) {
			_ = call(mustTransport(t, TransportConfig{Base: up, Egress: undaunted()}), r)
			_ = call(mustTransport(t, TransportConfig{Base: down, Egress: undaunted()}), r)
			_ = call(mustTransport(t, TransportConfig{Base: up, Egress: undaunted()}), r)
			status(w, 503)
		}, true},
		"none": {func(t *testing.T, w http.ResponseWriter, r *http.Request) {
			_ = call(mustTransport(t, TransportConfig{Base: up, Egress: undaunted()}), r)
			status(w, 503)
		}, false},
		"retries switched off": {func(t *testing.T, w http.ResponseWriter, r *http.Request) {
			once := egress.Config{Retry: must(retry.NewBudgeted(retry.BudgetedConfig{MaxAttempts: 1}))}
			_ = call(mustTransport(t, TransportConfig{Base: down, Egress: once}), r)
			status(w, 503)
		}, false},
		"a hedge that has lost": {func(t *testing.T, w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithCancel(r.Context())
			var lost sync.WaitGroup
			lost.Go(func() {
				_ = call(mustTransport(t, TransportConfig{Base: stuck, Egress: undaunted()}), r.WithContext(ctx))
			})
			synctest.Wait()
			cancel()
			lost.Wait()
			status(w, 503)
		}, false},
		"full here": {func(t *testing.T, w http.ResponseWriter, r *http.Request) {
			client := mustTransport(t, TransportConfig{Base: stuck, Egress: full})
			ctx, cancel := context.WithCancel(r.Context())
			var first sync.WaitGroup
			first.Go(func() { _ = call(client, r.WithContext(ctx)) })
			synctest.Wait()
			if err := call(client, r); !errors.Is(err, spillway.ErrRejected) {
				t.Errorf("the second call: %v", err)
			}
			cancel()
			first.Wait()
			status(w, 503)
		}, true},
		"throttled here": {func(t *testing.T, w http.ResponseWriter, r *http.Request) {
			client := mustTransport(t, TransportConfig{Base: down, Egress: closed, Route: noRoute})
			for range 5 {
				_ = call(client, r.WithContext(t.Context())) // of others
			}
			if err := call(client, r); !errors.Is(err, spillway.ErrRejected) {
				t.Errorf("not throttled: %v", err)
			}
			status(w, 503)
		}, true},
		"a goroutine that outlives the request": {func(t *testing.T, w http.ResponseWriter, r *http.Request) {
			client := mustTransport(t, TransportConfig{Base: down, Egress: undaunted()})
			status(w, 503)
			go func() { _ = call(client, r.WithContext(context.WithoutCancel(r.Context()))) }()
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := mustHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { row.serve(t, w, r) }),
					ingress.Config{Shed: patient}, HandlerConfig{})
				w := httptest.NewRecorder()
				h.ServeHTTP(w, incoming(t))
				_, _ = io.Copy(io.Discard, w.Result().Body)
				if got := w.Header().Get(headerShouldRetry) == "false"; got != row.final {
					t.Errorf("%d %v", w.Code, w.Header())
				}
				synctest.Wait()
			})
		})
	}
}
