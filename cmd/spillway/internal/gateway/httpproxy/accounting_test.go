package httpproxy

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/internal/admin/accounts"
)

// settled waits until all requests have ended, and returns the accounts.
func settled(t *testing.T, book *accounts.Book, offered uint64) accounts.Totals {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; runtime.Gosched() {
		all := book.Read()
		if all.Offered == offered && all.Sum() == offered {
			return all
		}
		if all.Sum() > all.Offered || all.Offered > offered || time.Now().After(end) {
			t.Fatalf("%d requests were sent, %d are offered, %d have ended: %+v", offered, all.Offered, all.Sum(), all)
		}
	}
}

// booked starts a proxy in front of h, and returns its accounts.
func booked(t *testing.T, h http.Handler, change func(*config.Config)) (url string, book *accounts.Book) {
	t.Helper()
	address, _ := upstreamAt(t, h)
	c := config.ForUpstream("127.0.0.1:0", address)
	c.Mode = "enforce"
	if change != nil {
		change(c)
	}
	book = new(accounts.Book)
	p, err := Start(context.Background(), c, Config{Accounts: book})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return "http://" + p.Addr("").String(), book
}

// TestEachRequestIsInOneAccount: for each way in which a request can end, there is one account.
func TestEachRequestIsInOneAccount(t *testing.T) {
	answers := func(status int, headers ...string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i+1 < len(headers); i += 2 {
				w.Header().Set(headers[i], headers[i+1])
			}
			w.WriteHeader(status)
		})
	}
	came := make(chan struct{}, 16)
	waits := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	tells := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		came <- struct{}{}
		waits(w, r)
	})
	for name, row := range map[string]struct {
		upstream http.Handler
		change   func(*config.Config)
		path     string
		method   string
		leaves   bool   // the client, once the upstream has the request
		spare    uint64 // requests before those that are looked at
		account  accounts.Account
		reason   accounts.Reason
	}{
		"served":              {upstream: answers(200)},
		"served, not found":   {upstream: answers(404)},
		"failed":              {upstream: answers(500), account: accounts.Failed},
		"upstream overloaded": {upstream: answers(503), account: accounts.RejectedUpstream},
		"upstream over quota": {upstream: answers(429), account: accounts.RejectedUpstream},
		"retried, served":     {upstream: overloadedAtFirst(), change: func(c *config.Config) { c.Clusters[0].Retry.Mode = "enforce" }, path: "/retry"},
		"unreachable":         {change: func(c *config.Config) { c.Clusters[0].Endpoints = []string{closedAddress} }, account: accounts.Failed},
		"late": {upstream: waits, change: func(c *config.Config) {
			c.Routes = []config.Route{{Timeout: 20 * time.Millisecond}}
			c.Clusters[0].Shed.Mode = "off"
		}, account: accounts.Late},
		"rate limit":        {upstream: answers(200), change: func(c *config.Config) { c.Clusters[0].RateLimit = config.RateLimit{Rate: 0.001} }, spare: 1, account: accounts.Rejected, reason: 1},
		"no route":          {upstream: answers(200), change: func(c *config.Config) { c.Routes = []config.Route{{Path: "/a"}} }, path: "/b", account: accounts.Rejected, reason: accounts.NoRoute},
		"too long":          {upstream: answers(200), change: func(c *config.Config) { c.Listeners[0].MaxBodyBytes = 1 }, method: "POST", account: accounts.Rejected, reason: accounts.BadRequest},
		"client gone, sent": {upstream: tells, leaves: true, account: accounts.GoneSent},
		"cut short": {upstream: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(make([]byte, 1<<20))
			panic(http.ErrAbortHandler)
		}), account: accounts.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			h := row.upstream
			if h == nil {
				h = answers(200)
			}
			url, book := booked(t, h, row.change)
			c := client(t, false)
			var body io.Reader
			if row.method == "POST" {
				body = strings.NewReader("long")
			}
			const n = 3
			for range n + row.spare {
				ctx, leave := context.WithCancel(context.Background())
				if row.leaves {
					go func() {
						<-came
						leave()
					}()
				}
				req := httptest.NewRequestWithContext(ctx, max(row.method, "GET"), url+row.path, body)
				req.RequestURI = ""
				if resp, err := c.Do(req); err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
				leave()
				if row.method == "POST" {
					body = strings.NewReader("long")
				}
			}
			all := settled(t, book, n+row.spare)
			if got := all.Of(row.account); got != n {
				t.Errorf("%d of %d are in account %v: %+v", got, n, row.account, all)
			}
			if row.account == accounts.Rejected && all.Rejected[row.reason] != n {
				t.Errorf("reasons: %+v", all.Rejected)
			}
			if row.path == "/retry" && all.Retried[accounts.Served] == 0 {
				t.Errorf("none was retried: %+v", all)
			}
		})
	}
}

// overloadedAtFirst rejects every other attempt.
func overloadedAtFirst() http.Handler {
	var mu sync.Mutex
	n := 0
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if n++; n%2 == 1 {
			w.Header().Set("X-Envoy-Overloaded", "true")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
}

// TestAccountsAddUp has many clients that leave at any time, with and without bodies, by both
// protocols, at a proxy that rejects, queues and retries, while its configuration changes.
func TestAccountsAddUp(t *testing.T) {
	upstream := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch r.URL.Query().Get("do") {
		case "fail":
			w.WriteHeader(http.StatusInternalServerError)
		case "overload":
			w.WriteHeader(http.StatusServiceUnavailable)
		case "abort":
			_, _ = w.Write(make([]byte, 1<<17))
			panic(http.ErrAbortHandler)
		case "wait":
			select {
			case <-r.Context().Done():
			case <-time.After(20 * time.Millisecond):
			}
		default:
			_, _ = w.Write(make([]byte, 1<<15))
		}
	})
	for name, change := range map[string]func(*config.Config){
		"shed": func(c *config.Config) { c.Clusters[0].Shed.MaxInFlight = 8; c.Clusters[0].Retry.Mode = "enforce" },
		"batch": func(c *config.Config) {
			c.Clusters[0].Batch = &config.Batch{Connections: 2, Queue: 8, MaxWait: 20 * time.Millisecond}
		},
		"rate": func(c *config.Config) {
			c.Clusters[0].RateLimit = config.RateLimit{Rate: 300, QueueDepth: 8}
			c.Clusters[0].Inflight.MaxInFlight = 4
		},
		"caps": func(c *config.Config) {
			c.Listeners[0].MaxRequests = 4
			c.Routes = []config.Route{{Timeout: 15 * time.Millisecond}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			url, book := booked(t, upstream, change)
			const clients, each = 12, 12
			var all sync.WaitGroup
			came := new(comings)
			for n := range clients {
				all.Go(func() {
					c := client(t, n%2 == 0)
					random := rand.New(rand.NewPCG(uint64(n), 1))
					for range each {
						came.send(c, url, random)
					}
				})
			}
			all.Wait()
			got := book.Read()
			for end := time.Now().Add(time.Minute); got.Sum() != got.Offered && time.Now().Before(end); got = book.Read() {
				runtime.Gosched()
			}
			// A request whose client disconnected early may never have arrived.
			if got.Sum() != got.Offered || got.Offered < came.answered || got.Offered > came.sent {
				t.Errorf("%d offered, %d ended, %d answered of %d: %+v", got.Offered, got.Sum(), came.answered, came.sent, got)
			}
			rejected := uint64(0)
			for _, n := range got.Rejected {
				rejected += n
			}
			if rejected != got.Of(accounts.Rejected) {
				t.Errorf("%d by reason, %d rejected", rejected, got.Of(accounts.Rejected))
			}
			if served := got.Of(accounts.Served); served < came.served || served == 0 && name != "caps" { // whose deadline is short
				t.Errorf("%d are served, clients got %d", served, came.served)
			}
			t.Log(name, fmt.Sprint(got))
		})
	}
}

// comings are the clients' counts of their requests.
type comings struct {
	mu               sync.Mutex
	sent             uint64 // also again by net/http, where a connection was closed before the answer
	answered, served uint64
}

func (s *comings) send(c *http.Client, url string, random *rand.Rand) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(random.IntN(30))*time.Millisecond+time.Millisecond)
	defer cancel()
	if random.IntN(3) > 0 {
		ctx = context.Background()
	}
	do := []string{"", "", "fail", "overload", "abort", "wait"}[random.IntN(6)]
	method, body := http.MethodGet, io.Reader(http.NoBody)
	if random.IntN(3) == 0 {
		method, body = http.MethodPost, strings.NewReader(strings.Repeat("x", random.IntN(1<<17)))
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sent++
	}})
	req, _ := http.NewRequestWithContext(ctx, method, url+"/?do="+do, body)
	resp, err := c.Do(req)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answered++
	if err == nil && n == 1<<15 && resp.StatusCode == http.StatusOK {
		s.served++
	}
}
