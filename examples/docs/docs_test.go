package docs

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/seed90641741/spillway"
)

// code matches the blocks of Go in a document.
var code = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

// pages returns the documents whose code is compiled, by name.
func pages(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d documents: %v", len(files), err)
	}
	all := map[string]string{}
	for _, file := range append(files, "../../README.md") {
		all[strings.TrimPrefix(file, "../../")] = read(t, file)
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

// Each block of Go in a document is in a file of this module, which is compiled.
func TestCode(t *testing.T) {
	var compiled strings.Builder
	for _, pattern := range []string{"*.go", "../start/*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				compiled.WriteString(flat(read(t, file)) + "\n")
			}
		}
	}
	n := 0
	for name, text := range pages(t) {
		for _, block := range code.FindAllStringSubmatch(text, -1) {
			if n++; !strings.Contains(compiled.String(), flat(block[1])) {
				t.Errorf("%s has a block that no file of examples/docs or examples/start has:\n%s", name, block[1])
			}
		}
	}
	if n < 12 {
		t.Errorf("only %d blocks", n)
	}
}

// The commands of the first page work in an empty directory.
func TestStart(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	programs := code.FindAllStringSubmatch(read(t, "../../docs/start.md"), -1)
	for i, file := range []string{"server/main.go", "client/main.go"} {
		file = filepath.Join(dir, file)
		if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(programs[i][1]), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"mod", "init", "example.com/shop"},
		{"mod", "edit", "-require", "github.com/seed90641741/spillway@v0.1.0", "-replace", "github.com/seed90641741/spillway=" + root},
		{"vet", "./server"},
		{"vet", "./client"},
	} {
		c := exec.CommandContext(t.Context(), "go", args...)
		c.Dir, c.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
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
	go func() {
		_ = server(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			class <- spillway.CriticalityFrom(r.Context()).String()
		}), l)
	}()
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

func TestExplain(t *testing.T) {
	var b bytes.Buffer
	log.SetOutput(&b)
	defer log.SetOutput(os.Stderr)
	explain(fmt.Errorf("call: %w", &spillway.RejectedError{
		Policy: "inflight", Reason: spillway.ReasonMaxInFlight, Level: 20, Limit: 20, Unit: "requests in flight", RetryAfter: time.Second,
	}))
	want := "inflight rejected the call: max_in_flight, 20 of 20 requests in flight, come back after 1s"
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
			_, conn, err := rpc("127.0.0.1:1", grpc.WithTransportCredentials(insecure.NewCredentials()))
			return errors.Join(err, conn.Close())
		}(),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := database(t.Context(), "file::memory:", "acme", func(*sql.Rows) {}); err == nil || !strings.Contains(err.Error(), "no such table") {
		t.Errorf("sql: %v, want an error of the database", err)
	}
	t.Setenv("GRPC_XDS_BOOTSTRAP", "")
	t.Setenv("GRPC_XDS_BOOTSTRAP_CONFIG", `{"xds_servers":[{"server_uri":"127.0.0.1:1","channel_creds":[{"type":"insecure"}]}],"node":{"id":"x"}}`)
	if _, err := xds(); err != nil {
		t.Errorf("xds: %v", err)
	}
}

var _ = cache // TestRedis of examples/tasks runs the same calls
