package tasks

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/throttle"
)

// maxLines is how many lines a task may add to a program.
const maxLines = 15

// programs has the twelve tasks: for each the functions of this package, or an example in which
// marks enclose the added lines.
var programs = map[string][]string{
	"a protected server with a health endpoint": {"Server"},
	"a client":                {"Client"},
	"both sides of gRPC":      {"GRPC"},
	"quotas":                  {"Quota"},
	"Prometheus":              {"../prometheus/main.go"},
	"OpenTelemetry":           {"../otel/main.go"},
	"slog":                    {"../slog/main.go"},
	"a signal of the program": {"Signal"},
	"routers":                 {"Chi", "Gin", "Echo"},
	"SQL":                     {"SQL"},
	"Redis":                   {"Redis", "Rueidis"},
	"a view as of a breaker":  {"Breaker"},
}

// base has the programs without Spillway of tasks that share one.
var base = map[string]string{"Signal": "Server", "Quota": "Server", "Breaker": "Client"}

// Each task adds few lines to the program without Spillway.
func TestLines(t *testing.T) {
	funcs := functions(t)
	for task, all := range programs {
		for _, program := range all {
			added := marked(t, program)
			if !strings.HasSuffix(program, ".go") {
				before := program
				if other, ok := base[program]; ok {
					before = other
				}
				if funcs["after"+program] == "" || funcs["before"+before] == "" {
					t.Fatalf("no program for %s", program)
				}
				added = difference(funcs["before"+before], funcs["after"+program])
			}
			t.Logf("%s: %s: %d lines added", task, program, added)
			if added == 0 || added > maxLines {
				t.Errorf("%s adds %d lines, want 1 to %d", program, added, maxLines)
			}
		}
	}
}

// functions returns the bodies of the functions of this package.
func functions(t *testing.T) map[string]string {
	t.Helper()
	body := regexp.MustCompile(`(?ms)^func (before|after)(\w+)\(.*? \{\n(.*?)^\}`)
	funcs := map[string]string{}
	for _, file := range []string{"server.go", "client.go", "grpc.go", "routers.go", "gin.go", "stores.go"} {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range body.FindAllStringSubmatch(string(code), -1) {
			funcs[m[1]+m[2]] = m[3]
		}
	}
	return funcs
}

// difference returns how many lines of after are not in before.
func difference(before, after string) (added int) {
	had := strings.Split(before, "\n")
	for line := range strings.Lines(after) {
		if i := slices.Index(had, strings.TrimSuffix(line, "\n")); i >= 0 {
			had = slices.Delete(had, i, i+1)
		} else {
			added++
		}
	}
	return added
}

// marked returns how many lines of a file are between the marks, or 0 if program is no file.
func marked(t *testing.T, program string) int {
	t.Helper()
	if !strings.HasSuffix(program, ".go") {
		return 0
	}
	code, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(code), "\t// added\n")
	if len(parts) != 3 {
		t.Fatalf("%s has %d parts", program, len(parts))
	}
	return strings.Count(parts[1], "\n")
}

// The programs without Spillway compile, too.
var (
	_ = beforeServer
	_ = beforeClient
	_ = beforeGRPC
	_ = beforeChi
	_ = beforeEcho
	_ = beforeSQL
	_ = beforeRedis
	_ = beforeRueidis
)

func newMux() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	return mux
}

// status returns the status of the answer of h.
func status(h http.Handler, path, class, user string) int {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	if class != "" {
		r.Header.Set("X-Request-Criticality", class)
	}
	r.SetBasicAuth(user, "")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

func TestServer(t *testing.T) {
	h, err := afterServer(newMux())
	if err != nil {
		t.Fatal(err)
	}
	if a, b := status(h, "/", "", ""), status(h, "/healthz", "", ""); a != 200 || b != 200 {
		t.Errorf("%d and %d", a, b)
	}
}

func TestSignal(t *testing.T) {
	h, err := afterSignal(newMux(), func() int { return 93 })
	if err != nil {
		t.Fatal(err)
	}
	if low, high := status(h, "/", "SHEDDABLE", ""), status(h, "/", "", ""); low != 503 || high != 200 {
		t.Errorf("with 93 of 100 jobs SHEDDABLE gets %d and CRITICAL %d, want 503 and 200", low, high)
	}
}

func TestQuota(t *testing.T) {
	h, err := afterQuota(newMux())
	if err != nil {
		t.Fatal(err)
	}
	rejected := 0
	for range 100 {
		if status(h, "/", "", "bob") == http.StatusTooManyRequests {
			rejected++
		}
	}
	if other := status(h, "/", "", "alice"); rejected < 50 || other != 200 {
		t.Errorf("%d of 100 requests of one customer are rejected; another one gets %d", rejected, other)
	}
}

func TestClient(t *testing.T) {
	failures := 1
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if failures > 0 {
			failures--
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	client, err := afterClient()
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Get(server.URL)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v, want a retry that is served", resp, err)
	}
	resp.Body.Close()
}

func TestBreaker(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	var changes []throttle.StateChange
	client, states, err := afterBreaker(func(s throttle.StateChange) { changes = append(changes, s) })
	if err != nil {
		t.Fatal(err)
	}
	for range 300 {
		resp, err := client.Get(server.URL)
		if errors.Is(err, spillway.ErrRejected) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	host := server.Listener.Addr().String()
	if states()[host] == throttle.StateClosed || len(changes) == 0 || changes[0].Backend != host {
		t.Errorf("states %v, changes %+v", states(), changes)
	}
}

func TestGRPC(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, conn, err := afterGRPC(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	healthpb.RegisterHealthServer(server, health.NewServer())
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	answer, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true))
	if err != nil || answer.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("%v, %v", answer, err)
	}
}
