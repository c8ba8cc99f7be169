package recipes_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/gorilla/mux"

	"github.com/seed90641741/spillway"
	chirecipe "github.com/seed90641741/spillway/examples/recipes/chi"
	"github.com/seed90641741/spillway/examples/recipes/gateway"
	"github.com/seed90641741/spillway/examples/recipes/gorilla"
	"github.com/seed90641741/spillway/examples/recipes/nethttp"
	"github.com/seed90641741/spillway/examples/recipes/plain"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/spillhttp"
)

// A recipe serves a site, and returns its address.
type recipe struct {
	key      string // of the users
	serve    func(t *testing.T, c spillhttp.HandlerConfig, s *site) (address string)
	promises promises
}

// promises says what a recipe serves in addition to the users.
type promises struct {
	stream, socket, recovers bool
	unseen                   bool // requests without a route do not come to the gates
}

var allPromises = promises{stream: true, socket: true, recovers: true}

func TestServers(t *testing.T) {
	for name, recipe := range map[string]recipe{
		"nethttp": {"GET /users/{id}", serveMux, promises{}},
		"plain": {"/users/", func(t *testing.T, c spillhttp.HandlerConfig, s *site) string {
			return start(t)(plain.New(c, s.users))
		}, promises{}},
		"chi":     {"/users/{id}", serveChi, allPromises},
		"gorilla": {"/users/{id}", serveGorilla, promises{stream: true, socket: true}},
		"gateway": {"/users/", func(t *testing.T, c spillhttp.HandlerConfig, s *site) string {
			return start(t)(gateway.New(c, map[string]*url.URL{"/users/": {Scheme: "http", Host: start(t)(http.HandlerFunc(s.users), nil)}}))
		}, promises{}},
	} {
		t.Run(name, recipe.check)
	}
}

func serveMux(t *testing.T, c spillhttp.HandlerConfig, s *site) string {
	return start(t)(nethttp.New(c, s.users))
}

func serveChi(t *testing.T, c spillhttp.HandlerConfig, s *site) string {
	r := chi.NewRouter()
	r.Get("/users/{id}", s.users)
	r.Get("/healthz", healthy)
	r.Get("/stream", s.stream)
	r.Get("/events", s.events)
	r.Get("/socket", s.socket)
	r.With(middleware.RequestLogger(silence{}), middleware.Recoverer).Get("/panics", func(http.ResponseWriter, *http.Request) { panic("recipe") })
	return start(t)(chirecipe.Protect(r, c))
}

// silence logs nothing of a panic.
type silence struct{}

func (silence) NewLogEntry(*http.Request) middleware.LogEntry   { return silence{} }
func (silence) Write(int, int, http.Header, time.Duration, any) {}
func (silence) Panic(any, []byte)                               {}

func serveGorilla(t *testing.T, c spillhttp.HandlerConfig, s *site) string {
	r := mux.NewRouter()
	r.HandleFunc("/users/{id}", s.users)
	r.HandleFunc("/healthz", healthy)
	r.HandleFunc("/stream", s.stream)
	r.HandleFunc("/events", s.events)
	r.HandleFunc("/socket", s.socket)
	return start(t)(gorilla.Protect(r, c))
}

func healthy(http.ResponseWriter, *http.Request) {}

// start returns a func that serves a handler until the test ends, and returns the address.
func start(t *testing.T) func(http.Handler, error) string {
	t.Helper()
	return func(h http.Handler, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(h)
		t.Cleanup(server.Close)
		return server.Listener.Addr().String()
	}
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

func (r *recorder) list() []spillway.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// outcomes returns the outcomes so far.
func (r *recorder) outcomes() (all []spillway.Outcome) {
	for _, e := range r.list() {
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

// A visit is what one test of a recipe sees.
type visit struct {
	*site

	address string
	seen    recorder
	ingress *ingress.Server
}

// open serves a new site.
func (recipe recipe) open(t *testing.T) *visit {
	t.Helper()
	v := &visit{site: newSite()}
	v.ingress = newIngress(t, ingress.Config{MaxInFlight: 1, Observer: &v.seen})
	v.address = recipe.serve(t, spillhttp.HandlerConfig{Ingress: v.ingress, HealthPaths: []string{"/healthz"}}, v.site)
	return v
}

func (v *visit) get(t *testing.T, path string) (status int, body string) {
	t.Helper()
	resp, err := http.Get("http://" + v.address + path)
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

// check finds that a server is protected as each of them is, and that what the framework can do it can do behind the policies.
func (recipe recipe) check(t *testing.T) {
	t.Run("outcomes", recipe.checkOutcomes)
	t.Run("limit", recipe.checkLimit)
	if recipe.promises.stream {
		t.Run("stream", func(t *testing.T) { recipe.checkStream(t, "/stream", "", "one", "two") })
		t.Run("events", func(t *testing.T) {
			recipe.checkStream(t, "/events", "text/event-stream", "data:one\n\n", "data:two\n\n")
		})
	}
	if recipe.promises.socket {
		t.Run("socket", recipe.checkSocket)
	}
	if recipe.promises.recovers {
		t.Run("recovery", recipe.checkRecovery)
	}
}

// checkOutcomes finds that requests have the key of their route whatever the path, and that failures count as such.
func (recipe recipe) checkOutcomes(t *testing.T) {
	v := recipe.open(t)
	for _, row := range []struct {
		path, body string
		status     int
	}{
		{"/users/7", "user", 200}, {"/users/8", "user", 200}, {"/users/broken", "user", 500}, {"/nothing", "", 404}, {"/healthz", "", 200},
	} {
		if status, body := v.get(t, row.path); status != row.status || row.body != "" && body != row.body {
			t.Errorf("%s: %d %q, want %d %q", row.path, status, body, row.status, row.body)
		}
	}
	want := []spillway.Outcome{spillway.OutcomeServed, spillway.OutcomeServed, spillway.OutcomeFailed, spillway.OutcomeServed}
	if recipe.promises.unseen {
		want = want[:3]
	}
	if got := v.seen.outcomes(); !slices.Equal(got, want) {
		t.Errorf("outcomes %v, want %v", got, want)
	}
	_, _ = v.get(t, "/users/panics")
	for _, e := range v.seen.list() {
		if e.Call.Key != recipe.key && e.Call.Key != "" || e.Call.Key == "" && e.Outcome != spillway.OutcomeServed {
			t.Errorf("key %q of %+v, want %q", e.Call.Key, e, recipe.key)
		}
	}
}

// checkLimit finds that the server rejects what exceeds the limit, and nothing else, and always answers health checks.
func (recipe recipe) checkLimit(t *testing.T) {
	v := recipe.open(t)
	slow := make(chan int)
	go func() {
		status, _ := v.get(t, "/users/slow")
		slow <- status
	}()
	<-v.entered
	if status, _ := v.get(t, "/users/9"); status != http.StatusServiceUnavailable {
		t.Errorf("beyond the limit: %d, want 503", status)
	}
	if status, _ := v.get(t, "/healthz"); status != http.StatusOK {
		t.Errorf("health check of a busy server: %d", status)
	}
	close(v.release)
	if status := <-slow; status != http.StatusOK {
		t.Errorf("the slow request: %d", status)
	}
	v.idle(t)
}

// idle fails unless nothing is in flight, or what is ends while another request waits for it.
func (v *visit) idle(t *testing.T) {
	t.Helper()
	slot, why := v.ingress.Enter(t.Context(), spillway.Call{}, ratelimit.Caller{})
	if why.Rejected() {
		t.Errorf("after all requests have ended: %v", why.Err)
	}
	slot.Done(spillway.OutcomeServed)
}
