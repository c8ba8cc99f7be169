package httpproxy

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// TestChain has three proxies in a row, and at the bottom a service that always fails. One
// call makes three attempts at the bottom layer and one at each other layer, and the response
// to the client says not to retry.
func TestChain(t *testing.T) {
	for _, row := range []struct {
		name    string
		says    []string // by the bottom
		status  int
		call    bool // of gRPC
		bottoms int
	}{
		{"503", nil, http.StatusServiceUnavailable, false, 1},
		{"503, two endpoints", nil, http.StatusServiceUnavailable, false, 2},
		{"502", nil, http.StatusBadGateway, false, 1},
		{"overloaded", []string{"X-Envoy-Overloaded", "true", "X-Overload-Scope", "task"}, http.StatusServiceUnavailable, false, 1},
		{"UNAVAILABLE", []string{"Content-Type", "application/grpc", "Grpc-Status", "14", "Grpc-Retry-Pushback-Ms", "1"}, http.StatusOK, true, 1},
		{"UNAVAILABLE, three endpoints", []string{"Content-Type", "application/grpc", "Grpc-Status", "14", "Grpc-Retry-Pushback-Ms", "1"}, http.StatusOK, true, 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			quiet(t)
			var attempts atomic.Int64
			h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				attempts.Add(1)
				for i := 0; i+1 < len(row.says); i += 2 {
					w.Header().Set(row.says[i], row.says[i+1])
				}
				w.WriteHeader(row.status)
			})
			var next []string
			for range row.bottoms {
				address, _ := upstreamAt(t, h)
				next = append(next, address)
			}
			var all []*Proxy
			for range 3 {
				c := config.ForUpstream("127.0.0.1:0", next[0])
				c.Mode = "enforce"
				c.Clusters[0].Endpoints = next
				p := start(t, c)
				all = append(all, p)
				next = []string{p.Addr("").String()}
			}
			var resp *http.Response
			if row.call {
				_, resp, _ = ask(t, client(t, true), "http://"+next[0], "work")
			} else {
				resp, _ = do(t, client(t, false), http.MethodGet, "http://"+next[0], "")
			}
			if n := attempts.Load(); n != 3 {
				t.Errorf("%d attempts at the bottom", n)
			}
			for i, p := range all {
				sent := uint64(0)
				for _, e := range p.Stats(time.Now()).Clusters["upstream"].Endpoints {
					sent += e.Total
				}
				if want := []uint64{3, 1, 1}[i]; sent != want {
					t.Errorf("proxy %d above the bottom has sent %d times, want %d", i+1, sent, want)
				}
			}
			if resp.StatusCode != row.status || !row.call && resp.Header.Get("X-Should-Retry") != "false" ||
				row.call && resp.Header.Get("Grpc-Retry-Pushback-Ms") != "-1" {
				t.Errorf("the client got %s, %v", resp.Status, resp.Header)
			}
		})
	}
}
