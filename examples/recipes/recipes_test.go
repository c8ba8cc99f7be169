package recipes_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"testing"

	connectrpc "connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/examples/recipes/chi"
	"github.com/seed90641741/spillway/examples/recipes/connect"
	"github.com/seed90641741/spillway/examples/recipes/echo"
	"github.com/seed90641741/spillway/examples/recipes/gateway"
	"github.com/seed90641741/spillway/examples/recipes/nethttp"
	"github.com/seed90641741/spillway/examples/recipes/plain"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/spillhttp"
)

// A recipe makes a server with one route, which has the key.
type recipe struct {
	key  string
	make func(spillhttp.HandlerConfig, http.HandlerFunc) (http.Handler, error)
}

var recipes = map[string]recipe{
	"nethttp": {"GET /users/{id}", nethttp.New},
	"plain":   {"/users/", plain.New},
	"chi":     {"/users/{id}", chi.New},
	"echo":    {"/users/:id", echo.New},
	"gateway": {"/users/", func(c spillhttp.HandlerConfig, users http.HandlerFunc) (http.Handler, error) {
		return gateway.New(c, map[string]*url.URL{"/users/": {Scheme: "http", Host: start(users)}})
	}},
}

// start serves h until the process ends, and returns the address.
func start(h http.Handler) string {
	return httptest.NewServer(h).Listener.Addr().String()
}

// A recorder keeps the events of the gate that decides last.
type recorder struct {
	mu     sync.Mutex
	events []spillway.Event
}

func (r *recorder) Observe(e spillway.Event) {
	if e.Policy != "shed" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *recorder) outcomes() (all []spillway.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.Outcome != 0 {
			all = append(all, e.Outcome)
		}
	}
	return all
}

func newIngress(t *testing.T, c ingress.Config) *ingress.Server {
	t.Helper()
	s, err := ingress.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(b)
}

func TestServers(t *testing.T) {
	for name, recipe := range recipes {
		t.Run(name, recipe.check)
	}
}

// check finds that a server is protected as each of them is: requests have the key of their route
// whatever the path, failures and panics count as such, the server rejects what exceeds the limit,
// and health checks are always answered.
func (recipe recipe) check(t *testing.T) {
	var seen recorder
	entered, release := make(chan struct{}), make(chan struct{})
	handler, err := recipe.make(spillhttp.HandlerConfig{
		Ingress: newIngress(t, ingress.Config{MaxInFlight: 1, Observer: &seen}),
	}, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/users/broken":
			w.WriteHeader(http.StatusInternalServerError)
		case "/users/panics":
			panic(http.ErrAbortHandler)
		case "/users/slow":
			close(entered)
			<-release
		}
		_, _ = io.WriteString(w, "user")
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	for _, row := range []struct {
		path, body string
		status     int
	}{
		{"/users/7", "user", 200}, {"/users/8", "user", 200}, {"/users/broken", "user", 500}, {"/nothing", "", 404}, {"/healthz", "", 200},
	} {
		if status, body := get(t, server.URL+row.path); status != row.status || row.body != "" && body != row.body {
			t.Errorf("%s: %d %q, want %d %q", row.path, status, body, row.status, row.body)
		}
	}
	if got, want := seen.outcomes(), []spillway.Outcome{spillway.OutcomeServed, spillway.OutcomeServed, spillway.OutcomeFailed, spillway.OutcomeServed}; !slices.Equal(got, want) {
		t.Errorf("outcomes %v, want %v", got, want)
	}
	_, _ = get(t, server.URL+"/users/panics")

	slow := make(chan int)
	go func() {
		status, _ := get(t, server.URL+"/users/slow")
		slow <- status
	}()
	<-entered
	if status, _ := get(t, server.URL+"/users/9"); status != http.StatusServiceUnavailable {
		t.Errorf("beyond the limit: %d, want 503", status)
	}
	if status, _ := get(t, server.URL+"/healthz"); status != http.StatusOK {
		t.Errorf("health check of a busy server: %d", status)
	}
	close(release)
	if status := <-slow; status != http.StatusOK {
		t.Errorf("the slow request: %d", status)
	}
	seen.mu.Lock()
	defer seen.mu.Unlock()
	for _, e := range seen.events {
		if e.Call.Key != recipe.key && e.Call.Key != "" || e.Call.Key == "" && e.Outcome != spillway.OutcomeServed {
			t.Errorf("key %q of %+v, want %q", e.Call.Key, e, recipe.key)
		}
	}
}

// A service of connect-go that has too many calls answers with an error that its client
// understands, and the client retries.
func TestConnect(t *testing.T) {
	limited := newIngress(t, ingress.Config{MaxInFlight: 1})
	entered, release := make(chan struct{}), make(chan struct{})
	handler, err := connect.NewServer(limited, func(_ context.Context, req *connectrpc.Request[wrapperspb.StringValue]) (*connectrpc.Response[wrapperspb.StringValue], error) {
		if req.Msg.GetValue() == "slow" {
			close(entered)
			<-release
		}
		return connectrpc.NewResponse(wrapperspb.String("Ada")), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	client, err := connect.NewClient(server.Client(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	call := func(id string) error {
		_, err := client.CallUnary(t.Context(), connectrpc.NewRequest(wrapperspb.String(id)))
		return err
	}
	if err := call("7"); err != nil {
		t.Error(err)
	}
	done := make(chan error)
	go func() { done <- call("slow") }()
	<-entered
	err = call("8")
	if e, ok := errors.AsType[*connectrpc.Error](err); !ok || e.Code() != connectrpc.CodeUnavailable || len(e.Details()) == 0 {
		t.Errorf("beyond the limit: %v, want unavailable with details", err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
