package httpproxy

import (
	"encoding/binary"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// frame is a message of gRPC.
func frame(text string) string {
	b := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(text)))
	return string(append(b, text...))
}

// rejecting answers calls of gRPC with a status instead of headers.
func rejecting(calls *atomic.Int64, pairs ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/grpc")
		for i := 0; i < len(pairs); i += 2 {
			w.Header().Set(pairs[i], pairs[i+1])
		}
		w.WriteHeader(http.StatusOK)
	})
}

// echoing answers a call of gRPC with what it was sent, and status 0.
var echoing = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Trailer", "Grpc-Status")
	_, _ = io.Copy(w, r.Body)
	w.Header().Set("Grpc-Status", "0")
})

// ask makes a call of gRPC, whose length is not announced.
func ask(t *testing.T, c *http.Client, url, message string) (status string, resp *http.Response, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/a.B/C", io.MultiReader(strings.NewReader(frame(message))))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/grpc")
	req.Header.Set("Te", "trailers")
	resp, err = c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if status = resp.Header.Get("Grpc-Status"); status == "" {
		status = resp.Trailer.Get("Grpc-Status")
	}
	return status, resp, string(text)
}

// TestRejectionsOfGRPC sends calls to one endpoint that rejects and one that serves.
func TestRejectionsOfGRPC(t *testing.T) {
	quiet(t)
	long := strings.Repeat("x", 5000)
	for _, row := range []struct {
		says    []string
		mode    config.Mode
		message string
		retried bool
		final   bool // nobody above is to retry it either
	}{
		{[]string{"Grpc-Status", "14", "Grpc-Retry-Pushback-Ms", "0"}, "enforce", "short", true, false},
		{[]string{"Grpc-Status", "8", "Grpc-Retry-Pushback-Ms", "1"}, "enforce", "short", true, false},
		{[]string{"Grpc-Status", "14", "Grpc-Retry-Pushback-Ms", "0"}, "observe", "short", false, false},
		{[]string{"Grpc-Status", "14", "Grpc-Retry-Pushback-Ms", "0"}, "enforce", long, false, true},       // too long to be kept here
		{[]string{"Grpc-Status", "14", "Grpc-Retry-Pushback-Ms", "5000"}, "enforce", "short", true, false}, // it is about that endpoint
		{[]string{"Grpc-Status", "14", "Grpc-Retry-Pushback-Ms", "-1"}, "enforce", "short", false, true},
		{[]string{"Grpc-Status", "14", "Grpc-Retry-Pushback-Ms", "soon"}, "enforce", "short", false, true},
		{[]string{"Grpc-Status", "14"}, "enforce", "short", false, false}, // it may have been processed
		{[]string{"Grpc-Status", "8"}, "enforce", "short", false, false},
		{[]string{"Grpc-Status", "5", "Grpc-Retry-Pushback-Ms", "0"}, "enforce", "short", false, false},
	} {
		t.Run(strings.Join(row.says, " ")+" "+string(row.mode), func(t *testing.T) {
			var rejected atomic.Int64
			bad, _ := upstreamAt(t, rejecting(&rejected, row.says...))
			good, _ := upstreamAt(t, echoing)
			url, _ := front(t, echoing, func(c *config.Config) {
				x := &c.Clusters[0]
				x.Endpoints = []string{bad, good}
				x.Throttle.Mode = "off"
				x.Retry = config.Retry{Mode: row.mode, MaxAttempts: 2, Ratio: 1, Base: -1, MaxBodyBytes: 1000}
			})
			c := client(t, true)
			passed := 0
			for range 40 {
				switch status, resp, body := ask(t, c, url, row.message); {
				case status == "0" && body == frame(row.message):
				case status == row.says[1] && resp.StatusCode == http.StatusOK && body == "":
					passed++
					for i := 0; i < len(row.says); i += 2 {
						want := row.says[i+1]
						if row.final && i > 0 { // the pushback
							want = "-1"
						}
						if resp.Header.Get(row.says[i]) != want {
							t.Fatalf("the rejection has come as %v", resp.Header)
						}
					}
					if resp.Header.Get("X-Should-Retry")+resp.Header.Get("Retry-After-Ms") != "" {
						t.Fatalf("the disguise is left: %v", resp.Header)
					}
				default:
					t.Fatalf("status %s, %s, %d bytes", status, resp.Status, len(body))
				}
			}
			if n := int(rejected.Load()); n == 0 || (passed == 0) != row.retried || !row.retried && passed != n {
				t.Errorf("%d of %d rejections were passed on", passed, n)
			}
		})
	}
}

// TestRejectionsOfGRPCTeachTheThrottle rejects all calls for overload, and then for other
// reasons. A quota concerns one customer only, so it does not move the throttle.
func TestRejectionsOfGRPCTeachTheThrottle(t *testing.T) {
	quiet(t)
	for status, learns := range map[string]bool{"14": true, "8": false, "5": false} {
		var calls atomic.Int64
		url, p := front(t, rejecting(&calls, "Grpc-Status", status), func(c *config.Config) {
			c.Mode = "enforce"
			c.Clusters[0].Shed.Mode = "off"
		})
		c := client(t, true)
		for range 100 {
			ask(t, c, url, "work")
		}
		rejected := p.Stats(time.Now()).Clusters["upstream"].Egress.Throttle
		if learned := calls.Load() < 90; learned != learns {
			t.Errorf("of 100 calls rejected with %s, %d were sent: %+v", status, calls.Load(), rejected)
		}
	}
}

// TestTraceContextGoesThrough: tracing headers pass through unchanged, at an edge as well.
func TestTraceContextGoesThrough(t *testing.T) {
	quiet(t)
	sent := map[string]string{
		"Traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"Tracestate":  "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7",
		"B3":          "80f198ee56343ba864fe8b2a57d3eff7-e457b5a2e4d86bd1-1",
		"Baggage":     "userId=alice,serverNode=DF%2028;p=1",
	}
	url, _ := front(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		for name, want := range sent {
			if got := r.Header.Get(name); got != want {
				t.Errorf("%s has come as %q", name, got)
			}
		}
	}), nil)
	var pairs []string
	for name, value := range sent {
		pairs = append(pairs, name, value)
	}
	do(t, client(t, false), http.MethodGet, url, "", pairs...)
	do(t, client(t, true), http.MethodGet, url, "", pairs...)
}
