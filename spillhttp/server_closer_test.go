package spillhttp

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/load"
)

// mustCloser returns a Handler that closes connections, as NewHandler makes it, before a
// handler that answers once wait is closed. The utilization is what level says.
func mustCloser(t *testing.T, level *atomic.Int64, wait <-chan struct{}) *Handler {
	t.Helper()
	h := mustHandler(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-wait }), ingress.Config{
		Shed: patient, Load: load.Config{Signals: []load.Signal{{Name: "test", Read: func() float64 { return float64(level.Load()) }}}},
	}, HandlerConfig{})
	h.closer.paced()
	return h
}

// TestClosedConnections: which rejections close their connection.
func TestClosedConnections(t *testing.T) {
	for _, row := range []struct {
		name  string
		major int
		retry bool
		gap   time.Duration // between rejections
		want  int           // of 2,000 that close: no more than one in a hundred, but for retries
	}{
		{"HTTP/1.1, at once", 1, false, 0, 1},
		{"HTTP/1.1, a hundred in a second", 1, false, 10 * time.Millisecond, 20},
		{"retries by HTTP/1.1", 1, true, 10 * time.Millisecond, 2000},
		{"HTTP/2, one in a second", 2, false, time.Second, 20},
		{"HTTP/2, a thousand in a second", 2, false, time.Millisecond, 2},
		{"retries by HTTP/2", 2, true, 10 * time.Millisecond, 20},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var level atomic.Int64
				level.Store(2)
				h := mustCloser(t, &level, nil)
				time.Sleep(time.Second) // the load is read
				closed := 0
				for range 2000 {
					r := incoming(t)
					r.ProtoMajor = row.major
					if row.retry {
						r.Header.Set("X-Envoy-Attempt-Count", "2")
					}
					w := httptest.NewRecorder()
					h.ServeHTTP(w, r)
					if w.Code != http.StatusServiceUnavailable {
						t.Fatalf("answered %d", w.Code)
					}
					if w.Header().Get("Connection") == "close" {
						closed++
					}
					time.Sleep(row.gap)
				}
				if closed != row.want {
					t.Errorf("%d connections of 2,000 are closed, want %d", closed, row.want)
				}
			})
		})
	}
}

// TestClosedAfterAWait: requests that were served after a wait of 5 ms or longer close some of
// their connections over HTTP/1, as rejections do; those that did not wait, and HTTP/2, close none.
func TestClosedAfterAWait(t *testing.T) {
	for _, row := range []struct {
		name  string
		major int
		work  time.Duration
		to    string // an upgrade
		want  int    // of 20 that wait, in a second
	}{
		{"a wait of 20 ms", 1, 20 * time.Millisecond, "", 10},
		{"of 2 ms", 1, 2 * time.Millisecond, "", 0},
		{"HTTP/2", 2, 20 * time.Millisecond, "", 0},
		{"an upgrade", 1, 20 * time.Millisecond, "websocket", 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := mustHandler(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(row.work) }),
					ingress.Config{MaxInFlight: 1}, HandlerConfig{})
				h.closer.paced()
				h.closer.credit.Store(mostCredit)
				var first, second atomic.Int64 // closed
				send := func(closed *atomic.Int64) {
					r, w := incoming(t), httptest.NewRecorder()
					r.ProtoMajor = row.major
					if row.to != "" {
						r.Header.Set("Upgrade", row.to)
					}
					h.ServeHTTP(w, r)
					if w.Code != http.StatusOK {
						t.Errorf("answered %d", w.Code)
					}
					if w.Header().Get("Connection") == "close" {
						closed.Add(1)
					}
				}
				for range 20 {
					var both sync.WaitGroup
					both.Go(func() { send(&first) })
					synctest.Wait()
					both.Go(func() { send(&second) })
					both.Wait()
					time.Sleep(10 * time.Millisecond)
				}
				if first.Load() > 0 || int(second.Load()) != row.want {
					t.Errorf("closed %d that did not wait and %d that did, want 0 and %d", first.Load(), second.Load(), row.want)
				}
			})
		})
	}
}

// TestClosedConnectionsEndWell: a client opens another connection after a rejection, and what
// is in flight on the old one is served (by HTTP/2: GOAWAY).
func TestClosedConnectionsEndWell(t *testing.T) {
	var level atomic.Int64
	var handler atomic.Pointer[Handler]
	overPipes(t, func(w http.ResponseWriter, r *http.Request) { handler.Load().ServeHTTP(w, r) },
		func(t *testing.T, base *http.Transport, network *pipes) {
			wait := make(chan struct{})
			level.Store(0)
			handler.Store(mustCloser(t, &level, wait))
			handler.Load().closer.credit.Store(mostCredit)
			get := func() int {
				resp, err := base.RoundTrip(newGet(t, "http://server/"))
				if err != nil {
					t.Error(err)
					return 0
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				return resp.StatusCode
			}
			var early sync.WaitGroup
			early.Go(func() {
				if code := get(); code != http.StatusOK {
					t.Errorf("in flight: answered %d", code)
				}
			})
			synctest.Wait()
			level.Store(2)
			time.Sleep(time.Second)
			before := network.opens.Load()
			if code := get(); code != http.StatusServiceUnavailable {
				t.Fatalf("answered %d", code)
			}
			synctest.Wait()
			rejected := network.opens.Load()
			level.Store(0)
			time.Sleep(time.Second)
			close(wait)
			early.Wait()
			if code := get(); code != http.StatusOK {
				t.Errorf("afterwards: answered %d", code)
			}
			if first := base.Protocols.UnencryptedHTTP2(); first && rejected != before {
				t.Errorf("%d connections before the rejection, %d at it", before, rejected)
			}
			if now := network.opens.Load(); base.Protocols.UnencryptedHTTP2() && now != rejected+1 {
				t.Errorf("%d connections at the rejection, %d afterwards", rejected, now)
			}
		})
}
