package httpproxy

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/internal/thorough"
)

// TestIdleSecondConnections: connections of HTTP/2 are idle for about as long as the idle timeout, again and again, so that requests come
// while their end is announced, which the proxy does up to a tenth of a second later. None of them is lost, although they cannot be
// repeated: net/http alone loses some. Answers take several writes of net/http.
func TestIdleSecondConnections(t *testing.T) {
	t.Parallel() // a small load for seconds
	const timeout = 400 * time.Millisecond
	answer := strings.Repeat("x", 10_000)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, answer)
	})
	alone := httptest.NewUnstartedServer(handler)
	alone.Config.Protocols, alone.Config.IdleTimeout = new(http.Protocols), timeout
	alone.Config.Protocols.SetUnencryptedHTTP2(true)
	alone.Start()
	t.Cleanup(alone.Close)
	url, _ := front(t, handler, func(c *config.Config) { c.Listeners[0].IdleTimeout = timeout })
	clients, each := 32, 6
	if thorough.Enabled() {
		clients, each = 64, 30
	}
	for at, opened := range map[string]*atomic.Int64{alone.URL: {}, url: {}} {
		t.Run(map[bool]string{true: "proxy", false: "net/http"}[at == url], func(t *testing.T) {
			t.Parallel()
			var all sync.WaitGroup
			var failed, lost atomic.Int64
			var last atomic.Value
			for i := range clients {
				x, random := client(t, true), rand.New(rand.NewPCG(uint64(i), 0))
				all.Go(func() {
					for range each {
						<-time.After(timeout - 50*time.Millisecond + time.Duration(random.IntN(int(250*time.Millisecond))))
						if text, err := sendOnce(t.Context(), x, at, opened); err != nil {
							failed.Add(1)
							last.Store(err.Error())
						} else if text != answer {
							lost.Add(1)
						}
					}
				})
			}
			all.Wait()
			t.Logf("%d of %d requests failed, on %d connections", failed.Load(), clients*each, opened.Load())
			if at == url && failed.Load() > 0 {
				t.Error("the last failure of the proxy:", last.Load())
			}
			if lost.Load() > 0 || opened.Load() <= int64(clients) {
				t.Errorf("%d answers are wrong; %d connections, so the timeout ended few", lost.Load(), opened.Load())
			}
		})
	}
}

// sendOnce sends a request that cannot be repeated, and counts the connections that are new.
func sendOnce(ctx context.Context, x *http.Client, url string, opened *atomic.Int64) (string, error) {
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		if !got.Reused {
			opened.Add(1)
		}
	}})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, io.LimitReader(strings.NewReader("a body"), 6))
	if err != nil {
		return "", err
	}
	resp, err := x.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}
