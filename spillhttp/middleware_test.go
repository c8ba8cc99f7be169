package spillhttp_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/spillhttp"
)

// newIngress returns a Server whose observer collects the keys of requests.
func newIngress(t *testing.T, keys *[]string) *ingress.Server {
	t.Helper()
	s, err := ingress.New(ingress.Config{
		RateLimitMode: spillway.ModeObserve,
		Observer: spillway.ObserverFunc(func(e spillway.Event) {
			if e.Policy == "shed" {
				*keys = append(*keys, e.Call.Key)
			}
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

var nothing = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

func serve(h http.Handler, method, target string) {
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, target, nil))
}

// The key is the pattern of the route, whether the Handler is in front of the mux, behind it,
// or asks a router by itself. It is never what a client makes up.
func TestKey(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("GET /users/{id}", nothing)
	mux.Handle("/files/", nothing)
	mux.Handle("example.com/{$}", nothing)
	long := strings.Repeat("/x", 1000)
	for _, row := range []struct{ method, target, want string }{
		{"GET", "/users/17", "GET /users/{id}"},
		{"HEAD", "/users/18", "GET /users/{id}"},
		{"POST", "/users/17", ""}, // method not allowed
		{"GET", "/files/a/b", "/files/"},
		{"GET", "/files", "/files/"}, // is redirected
		{"GET", "/files//a/../b", "/files/"},
		{"CONNECT", "/files", ""},
		{"GET", "/", "example.com/{$}"},
		{"GET", "/nothing", ""},
		{"GET", long, ""},
	} {
		var keys []string
		c := spillhttp.HandlerConfig{Ingress: newIngress(t, &keys)}
		for _, front := range []func() http.Handler{
			func() http.Handler { return protect(t, mux, c) },
			func() http.Handler { // other middleware between
				c := c
				c.Route = func(r *http.Request) string { _, p := mux.Handler(r); return p }
				if row.method == http.MethodConnect {
					c.Route = nil
				}
				return protect(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { mux.ServeHTTP(w, r) }), c)
			},
		} {
			keys = nil
			serve(front(), row.method, row.target)
			if len(keys) != 1 || keys[0] != row.want {
				t.Errorf("%s %.40s: keys %q, want %q", row.method, row.target, keys, row.want)
			}
		}
	}
	var keys []string
	inner := http.NewServeMux()
	inner.Handle("/v1/items/{id}", nothing)
	outer := http.NewServeMux()
	outer.Handle("/v1/", protect(t, inner, spillhttp.HandlerConfig{Ingress: newIngress(t, &keys)}))
	serve(outer, "GET", "/v1/items/3")
	if len(keys) != 1 || keys[0] != "/v1/" {
		t.Errorf("behind a mux: keys %q, want the pattern of that mux", keys)
	}
	keys = nil
	serve(protect(t, mux, spillhttp.HandlerConfig{
		Ingress:  newIngress(t, &keys),
		Classify: func(*http.Request) spillway.Call { return spillway.Call{Key: "own"} },
	}), "GET", "/users/17")
	if len(keys) != 1 || keys[0] != "own" {
		t.Errorf("of Classify: keys %q", keys)
	}
}

func protect(t *testing.T, next http.Handler, c spillhttp.HandlerConfig) http.Handler {
	t.Helper()
	h, err := spillhttp.NewHandler(next, c)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// All handlers of a middleware share the limits of one server.
func TestMiddleware(t *testing.T) {
	limited, err := ingress.New(ingress.Config{MaxInFlight: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer limited.Close()
	protected, err := spillhttp.Middleware(spillhttp.HandlerConfig{Ingress: limited, HealthPaths: []string{"/healthz"}})
	if err != nil {
		t.Fatal(err)
	}
	entered, release := make(chan struct{}), make(chan struct{})
	slow := protected(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-release
	}))
	quick := protected(nothing)
	done := make(chan struct{})
	go func() {
		defer close(done)
		serve(slow, "GET", "/slow")
	}()
	<-entered
	w := httptest.NewRecorder()
	quick.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("with one request at work, the limit: %d, want 503", w.Code)
	}
	w = httptest.NewRecorder()
	quick.ServeHTTP(w, httptest.NewRequest("GET", "/healthz", nil))
	if w.Code != http.StatusOK {
		t.Errorf("health check: %d", w.Code)
	}
	close(release)
	<-done
	w = httptest.NewRecorder()
	quick.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if w.Code != http.StatusOK {
		t.Errorf("afterwards: %d", w.Code)
	}
}

// A configuration that is wrong is an error of Middleware, before any handler is made.
func TestMiddlewareConfig(t *testing.T) {
	if m, err := spillhttp.Middleware(spillhttp.HandlerConfig{HealthPaths: []string{"health"}}); err == nil || m != nil {
		t.Errorf("a wrong path: %v", err)
	}
	m, err := spillhttp.Middleware(spillhttp.HandlerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	m(nil).ServeHTTP(w, httptest.NewRequest("GET", "/nothing", nil))
	if w.Code != http.StatusNotFound {
		t.Errorf("a nil handler answers %d, want that of the default mux", w.Code)
	}
}

// An answer becomes an error that says whether to retry.
func TestCheckResponse(t *testing.T) {
	for _, row := range []struct {
		status       int
		header, text string
		isError      bool
		write, read  bool // retried
	}{
		{200, "", "", false, false, false},
		{304, "", "", false, false, false},
		{404, "", "", true, false, false},
		{500, "", "", true, false, true},
		{503, "", "", true, false, true},
		{503, "X-Envoy-Overloaded", "true", true, true, true},
		{503, "X-Should-Retry", "false", true, false, false},
		{429, "", "", true, false, false},
		{429, "Retry-After", "3", true, true, true},
		{501, "", "", true, false, false},
	} {
		resp := &http.Response{StatusCode: row.status, Header: http.Header{}}
		if row.header != "" {
			resp.Header.Set(row.header, row.text)
		}
		err := spillhttp.CheckResponse(resp)
		if (err != nil) != row.isError {
			t.Errorf("%d: %v", row.status, err)
			continue
		}
		if err == nil {
			continue
		}
		f := fault.Of(err)
		if f.Retryable(false) != row.write || f.Retryable(true) != row.read {
			t.Errorf("%d %s: %s: %+v, want write %v, read %v", row.status, row.header, row.text, f, row.write, row.read)
		}
		if row.header == "Retry-After" && f.RetryAfter != 3*time.Second {
			t.Errorf("hint %v", f.RetryAfter)
		}
	}
}
