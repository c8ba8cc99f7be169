package spillhttp

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
)

func TestDefaultRoute(t *testing.T) {
	for _, row := range []struct{ method, url, want string }{
		{"GET", "/", "GET /"},
		{"GET", "", "GET /"},
		{"POST", "/orders", "POST /orders"},
		{"GET", "/orders/17/items", "GET /orders/*/items"},
		{"GET", "/orders/0b2f-aa/items?x=1", "GET /orders/*/items"},
		{"GET", "/a/b/c/d/e/f", "GET /a/b/c/d"},
		{"GET", "/files/abcdefghijklmnopqrstuvwxyzabcdefg", "GET /files/*"},
		{"GET", "//", "GET //"},
		{"GET", "/v1/orders/9/a1b2/items", "GET /v1/orders/*/*"},
		{"GET", "/v2/200/x7", "GET /v2/*/x7"},
		{"GET", "/caf%25e", "GET /*"},
	} {
		if got := DefaultRoute(httptest.NewRequest(row.method, "http://backend"+row.url, nil)); got != row.want {
			t.Errorf("%s %s: %q, want %q", row.method, row.url, got, row.want)
		}
	}
}

// failing is a backend that takes 5 ms for each request; requests for which bad returns true
// are answered by the handler reject.
func failing(bad func(*http.Request) bool, reject func(*http.Request) *http.Response) baseFunc {
	return func(r *http.Request) (*http.Response, error) {
		time.Sleep(5 * time.Millisecond)
		if bad(r) {
			return reject(r), nil
		}
		return answer(r, 200, ""), nil
	}
}

// rates sends 900 bad requests and 100 good ones in each second, for ten of them, from the
// first moment of a process on, and returns how many of each were rejected here.
func rates(t *testing.T, client *Transport, bad, good func(t *testing.T, i int) *http.Request) (rejectedBad, rejectedGood int) {
	t.Helper()
	outcomes := make(chan [2]bool, 10_000)
	for i := range 10_000 {
		isBad := i%10 != 9
		r := good(t, i)
		if isBad {
			r = bad(t, i)
		}
		go func() {
			resp, err := client.RoundTrip(r)
			if err == nil {
				resp.Body.Close()
			}
			outcomes <- [2]bool{isBad, errors.Is(err, spillway.ErrRejected)}
		}()
		time.Sleep(time.Millisecond)
	}
	for range 10_000 {
		switch o := <-outcomes; {
		case o[0] && o[1]:
			rejectedBad++
		case o[1]:
			rejectedGood++
		}
	}
	return rejectedBad, rejectedGood
}

// TestNobodyElseIsThrottled: 900 rejections in a second for one customer or one path do not
// make the client reject any call of 100 others. Calls to a path that always fails are
// rejected. Calls of a customer over quota are not, where the client does not say which customer that is.
func TestNobodyElseIsThrottled(t *testing.T) {
	at := func(format string) func(*testing.T, int) *http.Request {
		return func(t *testing.T, i int) *http.Request {
			url := "http://backend" + format
			if format != "/good" {
				url = fmt.Sprintf(url, i)
			}
			return newGet(t, url)
		}
	}
	status := func(code int, header ...string) func(*http.Request) *http.Response {
		return func(r *http.Request) *http.Response {
			resp := answer(r, code, "")
			for i := 0; i < len(header); i += 2 {
				resp.Header.Set(header[i], header[i+1])
			}
			return resp
		}
	}
	for _, row := range []struct {
		name      string
		bad       string
		reject    func(*http.Request) *http.Response
		throttled bool
	}{
		{"429", "/bad/%d", status(429), false},
		{"429 with a hint", "/bad/%d", status(429, headerRetryAfterMs, "1"), false},
		{"429 of an Envoy", "/bad/%d", status(429, headerRateLimited, "true"), false},
		{"503 of the customer's scope", "/bad/%d", status(503, headerScope, "customer"), false},
		{"a path", "/bad/%d", status(503, headerOverloaded, "true"), true},
		{"a path of the same shape", "/%d", status(503, headerOverloaded, "true"), true},
		{"a path whose requests time out", "/bad/%d", status(504), true},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := mustTransport(t, TransportConfig{Base: failing(func(r *http.Request) bool { return r.URL.Path != "/good" }, row.reject)})
				bad, good := rates(t, client, at(row.bad), at("/good"))
				if good > 0 || (bad > 0) != row.throttled {
					t.Errorf("%d bad and %d good requests were rejected here", bad, good)
				}
			})
		})
	}
}

// TestManyPathsThrottle: where everything fails, the throttle works whatever the paths.
func TestManyPathsThrottle(t *testing.T) {
	names := func(n int) func(*testing.T, int) *http.Request {
		return func(t *testing.T, i int) *http.Request {
			name := []byte{'a' + byte(i%n%26), 'a' + byte(i%n/26%26), 'a' + byte(i%n/676%26)}
			return newGet(t, "http://backend/"+string(name))
		}
	}
	for _, n := range []int{1, 2, 10, 50, 100, 10_000} {
		synctest.Test(t, func(t *testing.T) {
			client := mustTransport(t, TransportConfig{
				Base: failing(func(*http.Request) bool { return true }, func(r *http.Request) *http.Response { return answer(r, 503, "") }),
			})
			bad, good := rates(t, client, names(n), names(n))
			if rejected := bad + good; rejected < 9000 {
				t.Errorf("%d paths: %d of 10000 requests were rejected here", n, rejected)
			}
			if known := len(client.Stats(time.Now())); known != 1 {
				t.Errorf("%d backends", known)
			}
		})
	}
}

// TestRouteOfOnesOwn: the empty route is that of the backend.
func TestRouteOfOnesOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := mustTransport(t, TransportConfig{
			Base:  failing(func(r *http.Request) bool { return r.URL.Path == "/bad" }, func(r *http.Request) *http.Response { return answer(r, 503, "") }),
			Route: noRoute, Egress: egress.Config{Retry: eager.Retry},
		})
		_, good := rates(t, client,
			func(t *testing.T, _ int) *http.Request { return newGet(t, "http://backend/bad") },
			func(t *testing.T, _ int) *http.Request { return newGet(t, "http://backend/good") })
		if good == 0 {
			t.Error("no request was rejected, as if there were routes")
		}
	})
}

func newGet(t *testing.T, url string) *http.Request {
	t.Helper()
	return must(http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))
}

// noRoute makes all requests to a backend share its throttle.
func noRoute(*http.Request) string { return "" }
