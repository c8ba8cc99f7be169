package spillhttp

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/retry"
)

// eager retries whatever may be retried, twice, at once and for free. The throttle
// is off, as it rejects at random.
var eager = egress.Config{
	Retry:        must(retry.NewBudgeted(retry.BudgetedConfig{Budget: retry.Unlimited{}})),
	ThrottleMode: spillway.ModeOff,
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// inBubble runs f in its own bubble, which fails if a goroutine is left.
func inBubble(t *testing.T, f func(*testing.T)) { synctest.Test(t, f) }

// baseFunc is a base made of a func, which closes the body of the request.
type baseFunc func(*http.Request) (*http.Response, error)

func (f baseFunc) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		defer req.Body.Close()
	}
	return f(req)
}

// reply is the body of an answer that reports what was done to it.
type reply struct {
	io.Reader
	closed atomic.Int32
}

func (r *reply) Close() error { r.closed.Add(1); return nil }

// answer returns an answer with headers given as pairs.
func answer(req *http.Request, status int, body string, headers ...string) *http.Response {
	resp := &http.Response{StatusCode: status, Header: make(http.Header), Body: http.NoBody, Request: req, ContentLength: int64(len(body))}
	if body != "" {
		resp.Body = &reply{Reader: strings.NewReader(body)}
	}
	for i := 0; i+1 < len(headers); i += 2 {
		resp.Header.Set(headers[i], headers[i+1])
	}
	return resp
}

// script is a base that gives one answer after the other, and fails once it is
// at its end.
func script(steps ...func(*http.Request) (*http.Response, error)) http.RoundTripper {
	var n atomic.Int32
	return baseFunc(func(req *http.Request) (*http.Response, error) {
		i := int(n.Add(1)) - 1
		if i >= len(steps) {
			return nil, errors.New("script: more attempts than expected")
		}
		return steps[i](req)
	})
}

// status is a step of a script.
func status(code int, headers ...string) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) {
		return answer(req, code, http.StatusText(code), headers...), nil
	}
}

// fails is a step of a script.
func fails(err error) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

func newRequest(t testing.TB, ctx context.Context, method string, body io.Reader) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, "http://backend.example/path", body)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func readAll(t *testing.T, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// inFlight returns how many requests a Transport has in flight in all.
func inFlight(rt *Transport) (n int) {
	for _, s := range rt.Stats(time.Now()) {
		n += s.InFlight.InFlight
	}
	return n
}

// quiet drops what servers log of connections that are broken on purpose.
var quiet = log.New(io.Discard, "", 0)
