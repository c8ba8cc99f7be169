package httpproxy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// A reporter is an endpoint whose requests to /cheap take 1 ms, and those to /dear 60 ms. It says so in each response.
func reporter(w http.ResponseWriter, r *http.Request) {
	takes := time.Millisecond
	if r.URL.Path == "/dear" {
		takes = 60 * time.Millisecond
	}
	<-time.After(takes)
	w.Header().Set("X-Request-Cost", fmt.Sprint(takes.Milliseconds()))
}

// visitors sends requests of a customer at random times until ctx ends.
type visitors struct {
	name         func() string
	path         string
	rate         float64
	sent, served atomic.Int64
}

func (v *visitors) run(ctx context.Context, t *testing.T, c *http.Client, url string, all *sync.WaitGroup) {
	t.Helper()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(rand.ExpFloat64() * float64(time.Second) / v.rate)):
		}
		v.sent.Add(1)
		all.Go(func() {
			resp, _ := do(t, c, http.MethodGet, url+v.path, "", "X-Customer", v.name())
			if resp.StatusCode == http.StatusOK {
				v.served.Add(1)
			} else if resp.StatusCode != http.StatusTooManyRequests {
				t.Errorf("status %d", resp.StatusCode)
			}
		})
	}
}

// TestStrangersAtTheProxy: through sockets, a customer with expensive requests is held to its limit within two seconds, listed or not, and under
// a name for each request to what all unlisted customers may use. A customer that uses 27 % of its limit notices nothing. The endpoint
// reports what each request has cost.
func TestStrangersAtTheProxy(t *testing.T) {
	const limit = 148 // ms/s
	each := config.Limit{Rate: limit}
	for name, row := range map[string]struct {
		quota   config.Quota
		invents bool
		most    float64 // ms/s
	}{
		"listed":         {quota: config.Quota{Customers: map[string]config.Limit{"honest": each, "dear": each}}, most: limit},
		"unlisted":       {quota: config.Quota{DefaultLimit: each}, most: limit},
		"invented names": {quota: config.Quota{DefaultLimit: each, UnlistedTotal: config.Limit{Rate: 300}}, invents: true, most: 300},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // a small load for seconds
			url, _ := front(t, http.HandlerFunc(reporter), func(c *config.Config) {
				noShed(c)
				c.Mode = "enforce"
				c.Clusters[0].Quota, c.Clusters[0].ReportsCost = &row.quota, true
				c.Routes = []config.Route{{Customer: config.Customer{Header: "X-Customer", Trusted: true}}}
			})
			c := client(t, false)
			c.Transport.(*http.Transport).MaxIdleConnsPerHost = 100
			honest := &visitors{name: func() string { return "honest" }, path: "/cheap", rate: 40}
			dear := &visitors{name: func() string { return "dear" }, path: "/dear", rate: 20}
			if row.invents {
				dear.name = func() string { return fmt.Sprint(rand.Uint64()) }
			}
			var all sync.WaitGroup
			run := func(d time.Duration, who ...*visitors) {
				ctx, cancel := context.WithTimeout(t.Context(), d)
				defer cancel()
				var senders sync.WaitGroup
				for _, v := range who {
					senders.Go(func() { v.run(ctx, t, c, url, &all) })
				}
				senders.Wait()
				all.Wait()
			}
			run(time.Second, honest)
			began := time.Now()
			run(2*time.Second, honest, dear)
			first := dear.served.Load()
			during := longer(5*time.Second, 30*time.Second)
			run(during, honest, dear)
			passed := time.Since(began).Seconds()
			spent := float64((dear.served.Load()-first)*60) / during.Seconds()
			run(2*time.Second, honest)
			if sent, served := honest.sent.Load(), honest.served.Load(); float64(served) < 0.99*float64(sent) {
				t.Errorf("%d of %d requests of the honest customer are served", served, sent)
			}
			t.Logf("%s: %d expensive requests are served in 2 s, then %.0f ms/s", name, first, spent)
			// Besides its limit it has a burst of a second, and four requests may run when the limit is reached: 1.2 do so on average.
			if most := row.most*(passed+1) + 4*60; float64(dear.served.Load()*60) > most {
				t.Errorf("the expensive customer has used %d ms, want at most %.0f", dear.served.Load()*60, most)
			}
		})
	}
}
