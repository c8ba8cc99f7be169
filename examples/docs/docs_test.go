package docs

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/snippets"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/quota/fleet"
	"github.com/seed90641741/spillway/spillhttp"
	"github.com/seed90641741/spillway/spillredis/board"
)

// documents returns the documents of the repository.
func documents(t *testing.T) []snippets.Snippet {
	t.Helper()
	all, err := snippets.All(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// flat removes the indentation of each line.
func flat(text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimSpace(text)) {
		b.WriteString(strings.TrimSpace(line) + "\n")
	}
	return b.String()
}

// compiled returns the programs of this module, and the examples of all packages.
func compiled(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, pattern := range []string{"../*/*.go", "../*/*/*.go", "../../*/example*_test.go", "../../*/*/example*_test.go", "../../benchmarks/comingfrom/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) < 1 {
			t.Fatalf("%s: %d files: %v", pattern, len(files), err)
		}
		for _, file := range files {
			if strings.HasPrefix(filepath.Base(file), "example") || !strings.HasSuffix(file, "_test.go") {
				all.WriteString(flat(read(t, file)) + "\n")
			}
		}
	}
	return all.String()
}

// Each block of Go in a document is in a file that is compiled.
func TestCode(t *testing.T) {
	all, n := compiled(t), 0
	for _, s := range documents(t) {
		if s.Kind != "go" {
			continue
		}
		if n++; !strings.Contains(all, flat(s.Text)) {
			t.Errorf("%s: no program in examples, and no example test, has this code:\n%s", s, s.Text)
		}
	}
	if n < 30 {
		t.Errorf("only %d blocks", n)
	}
}

// guides are the pages about modules that have a README, too.
var guides = map[string]string{
	"spillgrpc": "grpc", "spillmongo": "mongodb", "spillaws": "aws", "spillxds": "xds", "spillsql": "sql", "spillredis": "redis",
}

// The README of a module begins with the command and the code of its guide, and leads to it.
func TestReadmesOfModules(t *testing.T) {
	blocks := make(map[string]string)
	for _, s := range documents(t) {
		if key := s.File + " " + s.Kind; blocks[key] == "" {
			blocks[key] = s.Text // the first one
		}
	}
	for module, guide := range guides {
		readme, page := module+"/README.md", "docs/"+guide+".md"
		for _, kind := range []string{"sh", "go"} {
			if a, b := blocks[readme+" "+kind], blocks[page+" "+kind]; a != b || a == "" {
				t.Errorf("%s begins with %q, %s with %q", readme, a, page, b)
			}
		}
		if link := "(../docs/" + guide + ".md)"; !strings.Contains(read(t, "../../"+readme), link) {
			t.Errorf("%s has no link %s", readme, link)
		}
	}
}

// Guides to protocols and proxies have the same sections in the same order.
func TestShape(t *testing.T) {
	for _, guide := range []string{"http", "grpc", "mongodb", "aws", "xds", "sql", "redis", "proxy", "mongodb-proxy"} {
		text := read(t, "../../docs/"+guide+".md")
		at := 0
		for _, heading := range []string{"Install", "Ten lines", "Defaults", "What is rejected when", "Knobs", "Metrics", "Limits"} {
			i := strings.Index(text, "\n## "+heading+"\n")
			if i < at {
				t.Errorf("docs/%s.md lacks the section %q, or has it in another order", guide, heading)
			}
			at = max(at, i)
		}
	}
}

// The README has the two commands to begin with.
func TestReadme(t *testing.T) {
	for _, command := range []string{"go run ./cmd/spillway drill", "go test work"} {
		if !strings.Contains(read(t, "../../README.md"), "\n"+command+"\n") {
			t.Errorf("the README does not have the command %q", command)
		}
	}
}

// Each reason has a section on the page that explains rejections.
func TestReasons(t *testing.T) {
	page := read(t, "../../docs/troubleshooting.md")
	for r := spillway.ReasonNone + 1; ; r++ {
		if strings.HasPrefix(r.String(), "Reason(") {
			return
		}
		if !strings.Contains(page, "\n## "+r.String()+"\n") {
			t.Errorf("docs/troubleshooting.md has no section %q", "## "+r.String())
		}
	}
}

// loopback returns a listener.
func loopback(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestHTTP(t *testing.T) {
	l := loopback(t)
	class := make(chan string, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(_ http.ResponseWriter, r *http.Request) { class <- spillway.CriticalityFrom(r.Context()).String() })
	go func() { _ = server(t.Context(), mux, l) }()
	c, err := client()
	if err != nil {
		t.Fatal(err)
	}
	if err := call(t.Context(), c, "http://"+l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if got := <-class; got != "SHEDDABLE_PLUS" {
		t.Errorf("the server sees %s", got)
	}
	if _, err := observed(http.NotFoundHandler(), nil); err != nil {
		t.Error(err)
	}
	if _, err := logged(); err != nil {
		t.Error(err)
	}
	config := ingress.Config{ShedMode: spillway.ModeObserve}
	gates, err := ingress.New(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := enforce(gates, config); err != nil {
		t.Error(err)
	}
}

func TestTLS(t *testing.T) {
	issuer := httptest.NewTLSServer(nil) // for its certificate
	defer issuer.Close()
	gates, err := ingress.New(ingress.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer gates.Close()
	handler, err := spillhttp.NewHandler(http.NotFoundHandler(), spillhttp.HandlerConfig{Ingress: gates})
	if err != nil {
		t.Fatal(err)
	}
	for name, serve := range map[string]func(*http.Server, net.Listener) error{
		"encrypted": func(s *http.Server, l net.Listener) error { return encrypted(handler, s, l) },
		"limited":   func(s *http.Server, l net.Listener) error { return limited(gates, s, l) },
	} {
		l := loopback(t)
		s := &http.Server{Handler: handler, TLSConfig: issuer.TLS.Clone(), ReadHeaderTimeout: time.Second}
		done := make(chan error, 1)
		go func() { done <- serve(s, l) }()
		resp, err := issuer.Client().Get("https://" + l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusNotFound {
			t.Error(name, resp.Status, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(name, err)
		}
	}
}

func TestCosts(t *testing.T) {
	gates, err := costs()
	if err != nil {
		t.Fatal(err)
	}
	if err := gates.Close(); err != nil {
		t.Error(err)
	}
}

// Without its board a task uses its local limits: a customer without a limit has 10 calls per
// second.
func TestQuotas(t *testing.T) {
	h, err := quotas(t.Context(), http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	rejected := 0
	for range 200 {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.SetBasicAuth("acme", "")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code == http.StatusTooManyRequests {
			rejected++
		}
	}
	if rejected < 50 {
		t.Errorf("%d of 200 requests of one customer are rejected", rejected)
	}
}

// TestRaise: a limit that is raised while it is in use holds a few seconds later.
func TestRaise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fleet.Config{Tasks: 1, Limits: quota.LocalConfig{Customers: map[string]quota.Limit{"mail": {Rate: 1000}}}}
		f, err := fleet.New(c)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { fleet.Run(ctx, f, fleet.NewMemory(time.Now)) })
		q, err := quota.New(quota.Config{Allocator: f})
		if err != nil {
			t.Fatal(err)
		}
		admitted := func(seconds int) (n int) { // in the last second of some
			for i := range seconds * 5000 {
				time.Sleep(time.Second / 5000)
				if _, err := q.Admit(time.Now(), spillway.Call{Customer: "mail"}); err == nil && i >= (seconds-1)*5000 {
					n++
				}
			}
			return n
		}
		before := admitted(3)
		if err := raise(f, c); err != nil {
			t.Fatal(err)
		}
		if after := admitted(5); before < 950 || before > 1050 || after < 1900 || after > 2100 {
			t.Errorf("%d calls in a second, then %d, want 1000 and 2000", before, after)
		}
		stop()
		running.Wait()
	})
}

// Without its board, a shard uses its local limits.
func TestShards(t *testing.T) {
	client := board.Connect(redis.UniversalOptions{Addrs: []string{"127.0.0.1:1"}})
	defer func() { _ = client.Close() }()
	a, err := shards(t.Context(), fleet.Config{Tasks: 20, Limits: quota.LocalConfig{DefaultLimit: quota.Limit{Rate: 10}}}, client)
	if err != nil {
		t.Fatal(err)
	}
	if g := a.Lease(time.Now(), quota.Demand{Customer: "acme"}); g.Rate != 0.5 {
		t.Errorf("granted %v, want 0.5", g.Rate)
	}
}

// Without its board, a task of a region has its part of the limit over all regions.
func TestRegion(t *testing.T) {
	client := board.Connect(redis.UniversalOptions{Addrs: []string{"127.0.0.1:1"}})
	defer func() { _ = client.Close() }()
	a, err := region(t.Context(), client, client)
	if err != nil {
		t.Fatal(err)
	}
	if g := a.Lease(time.Now(), quota.Demand{Customer: "mail"}); g.Rate < 16.6 || g.Rate > 16.7 {
		t.Errorf("granted %v, want a 60th of 1000", g.Rate)
	}
}

func TestExplain(t *testing.T) {
	var b bytes.Buffer
	log.SetOutput(&b)
	defer log.SetOutput(os.Stderr)
	explain(fmt.Errorf("call: %w", &spillway.RejectedError{
		Policy: "inflight", Reason: spillway.ReasonMaxInFlight, Level: 20, Limit: 20, Unit: "requests in flight", RetryAfter: time.Second,
	}))
	want := "reason max_in_flight, spillway: rejected locally by inflight at 20 of 20 requests in flight, for about 1s more"
	if !strings.Contains(b.String(), want) {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestStores(t *testing.T) {
	for name, err := range map[string]error{
		"mongodb": func() error {
			c, err := mongodb("mongodb://127.0.0.1:1")
			return errors.Join(err, c.Disconnect(t.Context()))
		}(),
		"aws": func() error { _, err := aws(t.Context()); return err }(),
		"grpc": func() error {
			conn, err := rpcClient("127.0.0.1:1", grpc.WithTransportCredentials(insecure.NewCredentials()))
			return errors.Join(err, conn.Close())
		}(),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := database(t.Context(), "host=127.0.0.1 port=1", "acme", func(*sql.Rows) {}); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("sql: %v, want the error of a database that is not there", err)
	}
	t.Setenv("GRPC_XDS_BOOTSTRAP", "")
	t.Setenv("GRPC_XDS_BOOTSTRAP_CONFIG", `{"xds_servers":[{"server_uri":"127.0.0.1:1","channel_creds":[{"type":"insecure"}]}],"node":{"id":"x"}}`)
	if _, err := xds(); err != nil {
		t.Errorf("xds: %v", err)
	}
}

func TestConnect(t *testing.T) {
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	defer s.Close()
	calls, err := connected(mux, s.URL, func(_ context.Context, r *connect.Request[wrapperspb.StringValue]) (*connect.Response[wrapperspb.StringValue], error) {
		return connect.NewResponse(wrapperspb.String("user " + r.Msg.GetValue())), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := calls.CallUnary(t.Context(), connect.NewRequest(wrapperspb.String("7")))
	if err != nil || answer.Msg.GetValue() != "user 7" {
		t.Errorf("%v, %v", answer, err)
	}
}

func TestObservers(t *testing.T) {
	if _, err := logs(); err != nil {
		t.Error(err)
	}
	observer, _, _, err := telemetry()
	if err != nil {
		t.Fatal(err)
	}
	if err := observer.Close(); err != nil {
		t.Error(err)
	}
}

var _ = prom // registers with the default registry, which takes a collector once

var _ = operatorsPage // serves at an address that others may use

// TestRedis of examples/tasks runs the same calls.
var (
	_ = cache
	_ = rueidisCache
)
