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
// while their end is announced, which the proxy does up to a tenth of a second later. None that was sent is lost, although they cannot be
// repeated: net/http alone loses some. Answers take several writes of net/http. A request that the client gives up before it sends it,
// because the end is announced between its choice of a connection and its first frame, is the client's loss, and rare.
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
	for at, sent := range map[string]*sending{alone.URL: {}, url: {}} {
		t.Run(map[bool]string{true: "proxy", false: "net/http"}[at == url], func(t *testing.T) {
			t.Parallel()
			var all sync.WaitGroup
			var failed, unsent, wrong atomic.Int64
			var last atomic.Value
			for i := range clients {
				x, random := client(t, true), rand.New(rand.NewPCG(uint64(i), 0))
				all.Go(func() {
					for range each {
						<-time.After(timeout - 50*time.Millisecond + time.Duration(random.IntN(int(250*time.Millisecond))))
						switch text, wrote, err := sent.once(t.Context(), x, at); {
						case err != nil && !wrote:
							unsent.Add(1)
							last.Store(err.Error())
						case err != nil:
							failed.Add(1)
							last.Store(err.Error())
						case text != answer:
							wrong.Add(1)
						}
					}
				})
			}
			all.Wait()
			t.Logf("%d of %d requests failed, and %d unsent, on %d connections", failed.Load(), clients*each, unsent.Load(), sent.opened.Load())
			if at == url && (failed.Load() > 0 || unsent.Load() > int64(clients*each/100)) {
				t.Error("the last failure of the proxy:", last.Load())
			}
			if wrong.Load() > 0 || sent.opened.Load() <= int64(clients) {
				t.Errorf("%d answers are wrong; %d connections, so the timeout ended few", wrong.Load(), sent.opened.Load())
			}
		})
	}
}

// sending counts the connections that requests open.
type sending struct{ opened atomic.Int64 }

// once sends a request that cannot be repeated, and reports whether its head was written.
func (s *sending) once(ctx context.Context, x *http.Client, url string) (text string, wrote bool, err error) {
	var written atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) {
			if !got.Reused {
				s.opened.Add(1)
			}
		},
		WroteHeaders: func() { written.Store(true) },
	})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, io.LimitReader(strings.NewReader("a body"), 6))
	if err != nil {
		return "", false, err
	}
	resp, err := x.Do(r)
	if err != nil {
		return "", written.Load(), err
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	return string(all), true, err
}
