package spillhttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/retry"
)

// hedges is a client that sends hedges after 50 ms.
func hedges() egress.Config {
	c := undaunted()
	c.Hedge = retry.HedgeConfig{Delay: 50 * time.Millisecond}
	return c
}

func hedgesWrites() egress.Config {
	c := hedges()
	c.Hedge.Writes = true
	return c
}

// waits is a step of a script: an answer after d, or the error of a context that ends first.
func waits(d time.Duration, then func(*http.Request) (*http.Response, error)) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		select {
		case <-time.After(d):
			return then(r)
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
}

// A hedger is a Transport whose budgets have been earned, in front of a script.
type hedger struct {
	*Transport
	base http.RoundTripper
}

func (h *hedger) RoundTrip(r *http.Request) (*http.Response, error) { return h.base.RoundTrip(r) }

func newHedger(t *testing.T, c egress.Config, steps ...func(*http.Request) (*http.Response, error)) *hedger {
	t.Helper()
	h := &hedger{base: baseFunc(status(200))}
	h.Transport = mustTransport(t, TransportConfig{Base: h, Egress: c})
	for range 20 {
		resp, err := h.Transport.RoundTrip(newRequest(t, t.Context(), http.MethodGet, nil))
		if err != nil {
			t.Fatal(err)
		}
		readAll(t, resp)
	}
	h.base = script(steps...)
	return h
}

func (h *hedger) sent() uint64 { return h.Stats(time.Now())["backend.example"].Hedge.SentTotal }

func (h *hedger) checkIdle(t *testing.T) {
	t.Helper()
	synctest.Wait()
	if n := inFlight(h.Transport); n != 0 {
		t.Errorf("%d in flight", n)
	}
}

// The hedge answers first: its body can be read, the first attempt is canceled, and the
// hedge says that it is the second attempt.
func TestHedgeAnswers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var canceled atomic.Bool
		h := newHedger(t, hedges(), func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			canceled.Store(true)
			return nil, r.Context().Err()
		}, func(r *http.Request) (*http.Response, error) {
			return status(200, "Number", r.Header.Get("X-Envoy-Attempt-Count"))(r)
		})
		resp, err := h.Transport.RoundTrip(newRequest(t, t.Context(), http.MethodGet, nil))
		if err != nil {
			t.Fatal(err)
		}
		if n := inFlight(h.Transport); n != 1 {
			t.Errorf("%d in flight while the body is open, want 1", n)
		}
		if readAll(t, resp) != "OK" || !canceled.Load() || resp.Header.Get("Number") != "2" {
			t.Errorf("canceled: %v, attempt %q", canceled.Load(), resp.Header.Get("Number"))
		}
		h.checkIdle(t)
	})
}

// A loser that answers although it was canceled: its body is closed, whether that is an answer
// or a failure, and whichever of the two lost.
func TestHedgeClosesLosers(t *testing.T) {
	for _, code := range []int{200, 503} {
		for _, hedgeLoses := range []bool{false, true} {
			inBubble(t, func(t *testing.T) {
				loser := &reply{Reader: strings.NewReader("late")}
				stubborn := func(r *http.Request) (*http.Response, error) {
					<-r.Context().Done()
					<-time.After(time.Second)
					resp := answer(r, code, "")
					resp.Body = loser
					return resp, nil
				}
				steps := []func(*http.Request) (*http.Response, error){stubborn, waits(10*time.Millisecond, status(200))}
				if hedgeLoses {
					steps = []func(*http.Request) (*http.Response, error){waits(60*time.Millisecond, status(200)), stubborn}
				}
				h := newHedger(t, hedges(), steps...)
				resp, err := h.Transport.RoundTrip(newRequest(t, t.Context(), http.MethodGet, nil))
				if err != nil || readAll(t, resp) != "OK" || h.sent() != 1 {
					t.Fatalf("%v, %d hedges", err, h.sent())
				}
				<-time.After(2 * time.Second)
				if h.checkIdle(t); loser.closed.Load() == 0 {
					t.Errorf("%d, the hedge loses: %v: the body of the loser is open", code, hedgeLoses)
				}
			})
		}
	}
}

// Both fail, and the call ends with one of the answers: it can be read, the others are closed.
func TestHedgeBothFail(t *testing.T) {
	for name, row := range map[string]struct {
		hedge, want string
		sent        int
	}{
		"retried":     {"", "third", 3},
		"don't retry": {"false", "second", 2},
	} {
		inBubble(t, func(t *testing.T) {
			var bodies []*reply
			var mu sync.Mutex
			step := func(body, retry string) func(*http.Request) (*http.Response, error) {
				return waits(100*time.Millisecond, func(r *http.Request) (*http.Response, error) {
					resp := answer(r, 503, body)
					if retry != "" {
						resp.Header.Set(headerShouldRetry, retry)
					}
					mu.Lock()
					defer mu.Unlock()
					bodies = append(bodies, resp.Body.(*reply))
					return resp, nil
				})
			}
			h := newHedger(t, hedges(), step("first", ""), step("second", row.hedge), step("third", ""))
			resp, err := h.Transport.RoundTrip(newRequest(t, t.Context(), http.MethodGet, nil))
			if err != nil {
				t.Fatal(name, err)
			}
			if body := readAll(t, resp); body != row.want || len(bodies) != row.sent {
				t.Errorf("%s: %q after %d attempts, want %q after %d", name, body, len(bodies), row.want, row.sent)
			}
			h.checkIdle(t)
			for i, b := range bodies {
				if b.closed.Load() == 0 {
					t.Errorf("%s: body %d is open", name, i)
				}
			}
		})
	}
}

// What must not be hedged is not: a request that changes something, a body that exists
// once, a switch of protocols, any request of a Transport that is not told to.
func TestHedgeNot(t *testing.T) {
	once := struct{ io.Reader }{strings.NewReader("body")}
	for name, row := range map[string]struct {
		config  egress.Config
		method  string
		body    io.Reader
		headers []string
		hedged  bool
	}{
		"get":              {hedges(), http.MethodGet, nil, nil, true},
		"put":              {hedges(), http.MethodPut, strings.NewReader("body"), nil, false},
		"put on request":   {hedgesWrites(), http.MethodPut, strings.NewReader("body"), nil, true},
		"post with a key":  {hedgesWrites(), http.MethodPost, strings.NewReader("body"), []string{"Idempotency-Key", "1"}, true},
		"post":             {hedgesWrites(), http.MethodPost, strings.NewReader("body"), nil, false},
		"put once":         {hedgesWrites(), http.MethodPut, once, nil, false},
		"upgrade":          {hedges(), http.MethodGet, nil, []string{"Connection", "Upgrade", "Upgrade", "websocket"}, false},
		"off":              {undaunted(), http.MethodGet, nil, nil, false},
		"no place for two": {egress.Config{MaxInFlight: 1, Hedge: hedges().Hedge}, http.MethodGet, nil, nil, false},
	} {
		inBubble(t, func(t *testing.T) {
			var got [2]string
			take := func(i int) func(r *http.Request) (*http.Response, error) {
				return func(r *http.Request) (*http.Response, error) {
					if r.Body != nil {
						b, err := io.ReadAll(r.Body)
						if err != nil {
							return nil, err
						}
						got[i] = string(b)
					}
					return waits(time.Second, status(200))(r)
				}
			}
			h := newHedger(t, row.config, take(0), take(1))
			req := newRequest(t, t.Context(), row.method, row.body)
			for i := 0; i < len(row.headers); i += 2 {
				req.Header.Set(row.headers[i], row.headers[i+1])
			}
			resp, err := h.Transport.RoundTrip(req)
			if err != nil {
				t.Fatal(name, err)
			}
			readAll(t, resp)
			if hedged := h.sent() == 1; hedged != row.hedged || hedged && got[0] != got[1] {
				t.Errorf("%s: %d hedges, bodies %q", name, h.sent(), got)
			}
			h.checkIdle(t)
		})
	}
}

// 2000 calls at once to a backend that is slow and rejects nothing, after 1000 that were
// served in time: ten hedges at most.
func TestHedgeCrowd(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := hedges()
		c.MaxInFlight = -1
		h := newHedger(t, c)
		h.base = baseFunc(status(200))
		for range 1000 {
			resp, err := h.Transport.RoundTrip(newRequest(t, t.Context(), http.MethodGet, nil))
			if err != nil {
				t.Fatal(err)
			}
			readAll(t, resp)
		}
		h.base = baseFunc(waits(time.Second, status(200)))
		var all sync.WaitGroup
		for range 2000 {
			all.Go(func() {
				resp, err := h.Transport.RoundTrip(newRequest(t, t.Context(), http.MethodGet, nil))
				if err == nil {
					resp.Body.Close()
				}
			})
		}
		all.Wait()
		if h.sent() == 0 || h.sent() > 10 {
			t.Errorf("%d hedges", h.sent())
		}
		h.checkIdle(t)
	})
}

// Three layers that all hedge: at the bottom, hedges add up and do not multiply.
func TestHedgeChain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var bottom atomic.Int64
		var next http.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			if bottom.Add(1)%2 == 1 { // hedges win, so nothing but their budgets bounds them
				<-time.After(time.Second)
			}
		})
		for range 3 {
			c := hedges()
			c.MaxInFlight = -1
			service := ingress.Config{Shed: patient, Trust: ingress.Trust{Boundary: ingress.Internal}}
			client := mustTransport(t, TransportConfig{Base: inProcess(mustHandler(t, next, service, HandlerConfig{})), Egress: c})
			next = handsUp["status"](client)
		}
		const calls = 1000
		for range calls {
			next.ServeHTTP(httptest.NewRecorder(), newRequest(t, t.Context(), http.MethodGet, nil))
		}
		<-time.After(2 * time.Second)
		if n := bottom.Load(); n == calls || n > calls*13/10 {
			t.Errorf("%d requests at the bottom for %d calls, want at most 30 %% more", n, calls)
		}
	})
}

// Over real connections: the server sees that the first attempt is canceled, and the answer
// to the hedge streams. On a busy machine other calls may have spent the budget, so this is tried
// several times.
func TestHedgeOverSockets(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		var stuck atomic.Bool
		left := make(chan struct{}, 1000)
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if stuck.CompareAndSwap(true, false) {
				<-r.Context().Done()
				left <- struct{}{}
				return
			}
			for range 3 {
				_, _ = io.WriteString(w, "part ")
				_ = http.NewResponseController(w).Flush()
			}
		}))
		s.EnableHTTP2 = http2
		s.StartTLS()
		c := undaunted()
		c.Hedge = retry.HedgeConfig{Delay: 20 * time.Millisecond}
		rt := mustTransport(t, TransportConfig{Base: s.Client().Transport, Egress: c})
		get := func(timeout time.Duration) (string, error) {
			client := &http.Client{Transport: rt, Timeout: timeout}
			resp, err := client.Get(s.URL)
			if err != nil {
				return "", err
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			return string(body), err
		}
		err := errors.New("no round")
		for range 20 {
			for range 20 { // which earn what two hedges cost
				if _, err := get(time.Minute); err != nil {
					t.Fatal(err)
				}
			}
			stuck.Store(true)
			var body string
			body, err = get(2 * time.Second)
			<-left
			if err == nil && body != "part part part " {
				t.Errorf("read %q", body)
			}
			if err == nil {
				break
			}
		}
		if err != nil {
			t.Error("no hedge has answered: ", err)
		}
		s.Close()
	}
}

// The request is the caller's again when the call has returned: what it changes then is not sent with a hedge that has lost and
// is still on its way.
func TestHedgeOutlivesTheCall(t *testing.T) {
	for _, known := range []bool{false, true} {
		inBubble(t, func(t *testing.T) {
			var sent string
			h := newHedger(t, hedges(), waits(60*time.Millisecond, status(200)), func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				<-time.After(time.Millisecond) // as the goroutine of net/http that writes to a connection
				sent = r.URL.Path + " " + r.Header.Get("Accept")
				return nil, r.Context().Err()
			})
			h.Transport.config.External = func(*http.Request) bool { return !known }
			req := newRequest(t, t.Context(), http.MethodGet, nil)
			req.Header.Set("Accept", "text/plain")
			resp, err := h.Transport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			readAll(t, resp)
			req.URL.Path = "/next"
			req.Header.Set("Accept", "text/html")
			<-time.After(2 * time.Millisecond)
			h.checkIdle(t)
			if want := "/path text/plain"; h.sent() != 1 || sent != want || resp.Request != req {
				t.Errorf("internal %v: %d hedges, sent %q, want %q", known, h.sent(), sent, want)
			}
		})
	}
}

// A caller that leaves ends both attempts.
func TestHedgeCallerLeaves(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHedger(t, hedges(), waits(time.Minute, status(200)), waits(time.Minute, status(200)))
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := h.Transport.RoundTrip(newRequest(t, ctx, http.MethodGet, nil))
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 100*time.Millisecond || h.sent() != 1 {
			t.Errorf("%v after %v, %d hedges", err, time.Since(start), h.sent())
		}
		h.checkIdle(t)
	})
}

// An immediate retry takes the place in flight of the attempt before it, also where the call may be hedged.
func TestImmediateRetryOfAHedgedCall(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		for _, hedge := range []retry.HedgeConfig{{}, {Delay: time.Minute}} {
			rt := mustTransport(t, TransportConfig{
				Base:   script(status(http.StatusInternalServerError), status(http.StatusOK)),
				Egress: egress.Config{MaxInFlight: 1, Hedge: hedge, Retry: eager.Retry},
			})
			resp := must(rt.RoundTrip(newRequest(t, t.Context(), http.MethodGet, nil)))
			if resp.Body.Close(); resp.StatusCode != http.StatusOK {
				t.Errorf("hedge %+v: %d", hedge, resp.StatusCode)
			}
			if n := rt.Stats(time.Now())["backend.example"].InFlight.InFlight; n != 0 {
				t.Errorf("hedge %+v: %d in flight at the end", hedge, n)
			}
		}
	})
}
