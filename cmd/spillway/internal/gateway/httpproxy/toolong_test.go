package httpproxy

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// TestHeadersThatAnEndpointDoesNotAccept: an endpoint says by HTTP/2 how long headers may be. Longer ones are the client's
// fault: the endpoint is not blamed, and nothing is retried.
func TestHeadersThatAnEndpointDoesNotAccept(t *testing.T) {
	quiet(t)
	upstream := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	upstream.Config.Protocols = new(http.Protocols)
	upstream.Config.Protocols.SetUnencryptedHTTP2(true)
	upstream.Config.MaxHeaderBytes = 4 << 10
	upstream.Start()
	t.Cleanup(upstream.Close)
	url, p := front(t, http.NotFoundHandler(), func(c *config.Config) {
		c.Mode, c.Clusters[0].Endpoints, c.Clusters[0].Protocol = "enforce", []string{upstream.Listener.Addr().String()}, "http2"
	})
	x := client(t, false)
	for _, row := range []struct{ length, want int }{{1, 200}, {9 << 10, 431}, {1, 200}} {
		if resp, _ := do(t, x, http.MethodGet, url, "", "Long", strings.Repeat("a", row.length)); resp.StatusCode != row.want {
			t.Errorf("a header of %d bytes is answered with %s, want %d", row.length, resp.Status, row.want)
		}
	}
	if e := p.Stats(time.Now()).Clusters["upstream"].Endpoints[0]; e.Errors != 0 || e.Total != 3 {
		t.Errorf("%d attempts, of which %d failed, want 3 and none", e.Total, e.Errors)
	}
}

// TestAnswersWithTooLongAHead: an answer whose head is longer than the proxy reads is asked for once, by either protocol. The endpoint has
// processed the request, and would send the same again. Other requests that lose their connection for it are repeated.
func TestAnswersWithTooLongAHead(t *testing.T) {
	quiet(t)
	for _, protocol := range []string{"http1", "http2"} {
		t.Run(protocol, func(t *testing.T) {
			var asked, others atomic.Int64
			arrived, answer := make(chan struct{}, 10), make(chan struct{})
			upstream := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/long":
					asked.Add(1)
					for i := range 1200 {
						w.Header().Set("X-"+strconv.Itoa(i), strings.Repeat("a", 1<<10))
					}
				case "/other":
					if others.Add(1) == 1 { // lost, and repeated
						arrived <- struct{}{}
						<-answer
					}
				}
			}))
			upstream.Config.Protocols = new(http.Protocols)
			upstream.Config.Protocols.SetHTTP1(true)
			upstream.Config.Protocols.SetUnencryptedHTTP2(true)
			upstream.Start()
			t.Cleanup(upstream.Close)
			url, _ := front(t, http.NotFoundHandler(), func(c *config.Config) {
				c.Mode, c.Clusters[0].Endpoints, c.Clusters[0].Protocol = "enforce", []string{upstream.Listener.Addr().String()}, protocol
			})
			x := client(t, false)
			do(t, x, http.MethodGet, url, "")
			status := make(chan int)
			go func() {
				resp, _ := do(t, x, http.MethodGet, url+"/other", "")
				status <- resp.StatusCode
			}()
			<-arrived
			if resp, _ := do(t, x, http.MethodGet, url+"/long", ""); resp.StatusCode != http.StatusBadGateway || asked.Load() != 1 {
				t.Errorf("%s after %d requests, want 502 after one", resp.Status, asked.Load())
			}
			close(answer)
			if got := <-status; got != http.StatusOK {
				t.Errorf("another request at the same time: %d", got)
			}
		})
	}
}
