package spillhttp

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/claims"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/retry"
)

func TestTransportConfig(t *testing.T) {
	for _, row := range []struct {
		config TransportConfig
		want   string
	}{
		{TransportConfig{MaxBackends: -1}, "MaxBackends is -1, must be 0 or more"},
		{TransportConfig{Base: must(NewTransport(TransportConfig{}))}, "must be a RoundTripper that is no Transport"},
		{TransportConfig{Egress: egress.Config{ThrottleMode: 7}}, "ThrottleMode is Mode(7)"},
		{TransportConfig{}, ""},
	} {
		_, err := NewTransport(row.config)
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%+v: %v, want %q", row.config, err, row.want)
		}
	}
}

// TestAsIs: where nothing was retried, the error is the base's very own.
func TestAsIs(t *testing.T) {
	broken := &url.Error{Op: "dial", Err: errors.New("broken")}
	rt := mustTransport(t, TransportConfig{Base: script(fails(broken)), Egress: eager})
	_, err := rt.RoundTrip(newRequest(t, t.Context(), "POST", nil))
	if err != broken {
		t.Errorf("error %#v, want the base's", err)
	}
}

func TestRejectedHere(t *testing.T) {
	rt := mustTransport(t, TransportConfig{Base: script(status(200)), Egress: egress.Config{MaxInFlight: 1}})
	first, err := rt.RoundTrip(newRequest(t, t.Context(), "GET", nil))
	if err != nil {
		t.Fatal(err)
	}
	body := &tracked{Reader: strings.NewReader("payload")}
	_, err = rt.RoundTrip(newRequest(t, t.Context(), "POST", body))
	if !errors.Is(err, spillway.ErrRejected) {
		t.Errorf("error %v, want a local rejection", err)
	}
	if !body.closed {
		t.Error("the body of the rejected request was not closed")
	}
	_ = first.Body.Close()
	if n := inFlight(rt); n != 0 {
		t.Errorf("%d left in flight", n)
	}
	if _, err := rt.RoundTrip(newRequest(t, t.Context(), "POST", nil)); errors.Is(err, spillway.ErrRejected) {
		t.Errorf("rejected with nothing in flight: %v", err)
	}
}

// TestTimeoutIsSeen: net/url asks the error itself whether it was a timeout.
func TestTimeoutIsSeen(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		hangs := func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		}
		client := &http.Client{Transport: mustTransport(t, TransportConfig{Base: script(fails(errors.New("broken")), hangs), Egress: eager})}
		_, err := client.Do(newRequest(t, ctx, "GET", nil))
		e, ok := errors.AsType[*url.Error](err)
		if !ok || !e.Timeout() || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v: timeout %v", err, ok && e.Timeout())
		}
	})
}

// A service that rejects a call for its deadline, which an untrusted client has set, is not overloaded: a client that leaves too
// little time must not have the calls of all others throttled.
func TestCloseDeadlineOfAnUntrustedClient(t *testing.T) {
	for _, row := range []struct {
		untrusted bool
		reason    spillway.Reason
		want      float64 // requests that the throttle knows of
		grpc      bool
	}{
		{true, spillway.ReasonDeadline, 0, false},
		{true, spillway.ReasonDeadline, 0, true},
		{false, spillway.ReasonDeadline, 1, false},
		{true, spillway.ReasonMaxWait, 1, false},
		{true, spillway.ReasonMaxWait, 1, true},
	} {
		inBubble(t, func(t *testing.T) {
			once := must(retry.NewBudgeted(retry.BudgetedConfig{MaxAttempts: 1}))
			rt := mustTransport(t, TransportConfig{
				Base: script(func(r *http.Request) (*http.Response, error) {
					w := httptest.NewRecorder()
					if row.grpc {
						r = &http.Request{ProtoMajor: 2, Header: http.Header{"Content-Type": valueGRPC}}
					}
					why := ingress.Rejection{
						Outcome: spillway.OutcomeOverloaded, RetryAfter: time.Second, Err: &spillway.RejectedError{Reason: row.reason},
					}
					reject(w, r, &why, wordingOf(ingress.ReasonsFull, &why))
					return w.Result(), nil
				}),
				Egress: egress.Config{Retry: once},
			})
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if d, _ := ctx.Deadline(); row.untrusted {
				ctx = context.WithValue(ctx, claims.DeadlineKey{}, d)
			}
			resp, err := rt.RoundTrip(newRequest(t, ctx, http.MethodGet, nil))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if got := rt.Stats(time.Now())["backend.example"].Throttle[spillway.Critical.Index()].Requests; got != row.want {
				t.Errorf("untrusted %v, %v, gRPC %v: the throttle knows of %v requests, want %v", row.untrusted, row.reason, row.grpc, got, row.want)
			}
		})
	}
}

// TestHosts: each host has its own limits, and they are bounded.
func TestHosts(t *testing.T) {
	base := baseFunc(func(req *http.Request) (*http.Response, error) { return answer(req, 200, ""), nil })
	rt := mustTransport(t, TransportConfig{Base: base, MaxBackends: 2})
	for _, u := range []string{"http://a/", "http://b:80/", "http://c/", "http://c/other"} {
		req := newRequest(t, t.Context(), "GET", nil)
		req.URL = must(url.Parse(u))
		roundTrip(t, rt, req)
	}
	if s := rt.Stats(time.Now()); len(s) != 2 {
		t.Errorf("state of %d hosts kept, want 2", len(s))
	}
	keyed := mustTransport(t, TransportConfig{Base: base, Backend: func(req *http.Request) string { return req.Method }})
	roundTrip(t, keyed, newRequest(t, t.Context(), "PUT", nil))
	if _, ok := keyed.Stats(time.Now())["PUT"]; !ok {
		t.Errorf("backends %v, want the one named by Key", keyed.Stats(time.Now()))
	}
}

func TestMalformedRequest(t *testing.T) {
	rt := mustTransport(t, TransportConfig{})
	for name, req := range map[string]*http.Request{
		"no URL":    {Header: http.Header{}},
		"no header": {URL: &url.URL{Scheme: "http", Host: "backend.example"}},
	} {
		body := &tracked{Reader: strings.NewReader("x")}
		req.Body = body
		if _, err := rt.RoundTrip(req); err == nil || !body.closed {
			t.Errorf("%s: error %v, body closed %v", name, err, body.closed)
		}
	}
}

type idler struct {
	http.RoundTripper
	closed int
}

func (i *idler) CloseIdleConnections() { i.closed++ }

func TestCloseIdleConnections(t *testing.T) {
	base := &idler{}
	(&http.Client{Transport: mustTransport(t, TransportConfig{Base: base})}).CloseIdleConnections()
	mustTransport(t, TransportConfig{Base: script()}).CloseIdleConnections() // cannot; does nothing
	if base.closed != 1 {
		t.Errorf("passed on %d times, want 1", base.closed)
	}
}

// TestTransportUpdate: new policies for all hosts, with what the old ones have learnt,
// while a call is under way.
func TestTransportUpdate(t *testing.T) {
	var rt *Transport
	busy := true
	rt = mustTransport(t, TransportConfig{Egress: eager, Base: baseFunc(func(req *http.Request) (*http.Response, error) {
		if !busy {
			return answer(req, 200, "done"), nil
		}
		busy = false
		if err := rt.Update(egress.Config{MaxInFlight: 1}); err != nil { // between the first attempt and the second
			t.Error(err)
		}
		return answer(req, 503, "busy", "X-Should-Retry", "true"), nil
	})})
	resp := must(rt.RoundTrip(newRequest(t, t.Context(), "GET", nil)))
	if resp.StatusCode != 200 {
		t.Errorf("%d, want the answer to the retry by the strategy that the call began with", resp.StatusCode)
	}
	if err := rt.Update(egress.Config{MaxInFlight: 9, ThrottleMode: 9}); err == nil || !strings.HasPrefix(err.Error(), "spillhttp: Egress.ThrottleMode is Mode(9)") {
		t.Errorf("%v, want an error about ThrottleMode", err)
	}
	if _, err := rt.RoundTrip(newRequest(t, t.Context(), "GET", nil)); !errors.Is(err, spillway.ErrRejected) {
		t.Errorf("%v, want a rejection: the limit is 1, and the first answer is not read yet", err)
	}
	resp.Body.Close()
	roundTrip(t, rt, newRequest(t, t.Context(), "GET", nil))
	for host, s := range rt.Stats(time.Now()) {
		if s.InFlight.MaxInFlight != 1 || s.InFlight.InFlight != 0 {
			t.Errorf("%s: %+v", host, s.InFlight)
		}
	}
}

// TestAllocations: three on top of the base's, whatever the headers.
func TestAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	base := instant{"hello"}
	req := labelled(t)
	count := func(rt http.RoundTripper) float64 { return testing.AllocsPerRun(200, func() { roundTrip(t, rt, req) }) }
	bare := count(base)
	external := func(*http.Request) bool { return true }
	if n := count(mustTransport(t, TransportConfig{Base: base})) - bare; n > 3 {
		t.Errorf("%v allocations for a labelled request, want at most 3", n)
	}
	var task spillway.Task
	task.Begin(100, 200)
	req = req.WithContext(spillway.WithTask(req.Context(), &task))
	if n := count(mustTransport(t, TransportConfig{Base: base})) - bare; n > 3 {
		t.Errorf("%v allocations for one of a task, want at most 3", n)
	}
	if n := count(mustTransport(t, TransportConfig{Base: base, External: external})) - bare; n > 1 {
		t.Errorf("%v allocations for one without headers, want at most 1", n)
	}
}

// TestQuotaIsRetried: a customer over its quota is told when to come back, and its client obeys.
func TestQuotaIsRetried(t *testing.T) {
	limits := must(quota.NewLocal(quota.LocalConfig{DefaultLimit: quota.Limit{Rate: 20}}))
	h := mustHandler(t, bare, ingress.Config{Quota: quota.Config{Allocator: limits}, Shed: patient}, HandlerConfig{})
	server := httptest.NewServer(h)
	defer server.Close()
	client := http.Client{Transport: mustTransport(t, TransportConfig{Egress: egress.Config{
		Retry: must(retry.NewBudgeted(retry.BudgetedConfig{Ratio: -1, Budget: retry.Unlimited{}})),
	}})}
	defer client.CloseIdleConnections()
	rejected := func() (n uint64) {
		for _, c := range h.ingress.Stats(time.Now()).Quota {
			for _, class := range c.Classes {
				n += class.RejectedTotal
			}
		}
		return n
	}
	for calls := 0; rejected() == 0; calls++ {
		if calls > 1000 {
			t.Fatal("no call was rejected")
		}
		resp, err := client.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		if readAll(t, resp); resp.StatusCode != http.StatusNoContent {
			t.Errorf("call %d: %s", calls, resp.Status)
		}
	}
}
