package spillhttp

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
)

// calls makes a number of requests, one after another, and returns how many of each kind were not
// rejected here.
func calls(t *testing.T, client *Transport, n int, gap time.Duration, next func(i int) (kind, url string)) (made, sent map[string]int) {
	t.Helper()
	made, sent = map[string]int{}, map[string]int{}
	for i := range n {
		kind, url := next(i)
		made[kind]++
		resp, err := client.RoundTrip(newGet(t, url))
		if err == nil {
			resp.Body.Close()
		}
		if !errors.Is(err, spillway.ErrRejected) {
			sent[kind]++
		}
		time.Sleep(gap)
	}
	return made, sent
}

// TestNamesThatStrangersChoose: 40 calls per second to a prefix that answers 503, with names that the
// clients choose, and 10 per second to four healthy paths.
func TestNamesThatStrangersChoose(t *testing.T) {
	for _, names := range []int{1, 200, 1 << 20} {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 1))
			client := mustTransport(t, TransportConfig{Base: failing(
				func(r *http.Request) bool { return len(r.URL.Path) > 3 },
				func(r *http.Request) *http.Response { return answer(r, 503, "") })})
			made, sent := calls(t, client, 2000, 15*time.Millisecond, func(i int) (kind, url string) {
				if i%5 == 0 {
					return "honest", "http://backend/" + string(rune('a'+i/5%4))
				}
				n := r.IntN(names)
				return "strangers", fmt.Sprintf("http://backend/shard/%c%c%c%c", 'a'+n%26, 'a'+n/26%26, 'a'+n/676%26, 'a'+n/17576%26)
			})
			if sent["honest"] < made["honest"]*99/100 || sent["strangers"] > made["strangers"]/2 {
				t.Errorf("%d names: %v of %v calls were sent", names, sent, made)
			}
		})
	}
}

// TestCustomerOverQuota: 429 for one customer's every call throttles that customer only.
func TestCustomerOverQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := mustTransport(t, TransportConfig{
			Base: failing(func(r *http.Request) bool { return r.URL.Query().Get("key") == "over" },
				func(r *http.Request) *http.Response { return answer(r, 429, "") }),
			Customer: func(r *http.Request) string { return r.URL.Query().Get("key") },
		})
		made, sent := calls(t, client, 802, 10*time.Millisecond, func(i int) (kind, url string) {
			if i%2 == 0 {
				return "over", "http://backend/?key=over"
			}
			return "good", "http://backend/?key=good"
		})
		if sent["good"] != made["good"] || sent["over"] > 50 {
			t.Errorf("%v of %v calls were sent", sent, made)
		}
	})
}

// TestBrokenHostTakesNoRetries: one host answers nothing but failures. Of the calls to another host
// 1 in 20 needs a retry, and all succeed.
func TestBrokenHostTakesNoRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		client := mustTransport(t, TransportConfig{Base: failing(func(r *http.Request) bool {
			if r.URL.Host == "b" {
				n++
			}
			return r.URL.Host == "a" || n%20 == 10
		}, func(r *http.Request) *http.Response { return answer(r, 503, "") })})
		failed := 0
		for range 400 {
			for range 4 {
				if resp, err := client.RoundTrip(newGet(t, "http://a/")); err == nil {
					resp.Body.Close()
				}
			}
			resp, err := client.RoundTrip(newGet(t, "http://b/"))
			if err != nil || resp.StatusCode != 200 {
				failed++
			}
			if err == nil {
				resp.Body.Close()
			}
			time.Sleep(20 * time.Millisecond)
		}
		if failed > 0 {
			t.Errorf("%d of 400 calls to the other host failed", failed)
		}
	})
}

// TestBrokenPageTakesNoRetries: pages that answer 500 or 503 (40/s), fixed or with names that clients choose, and four paths
// (10/s) where 1 in 20 answers is a short 503. The pages that answer 500 were broken before the others called.
func TestBrokenPageTakesNoRetries(t *testing.T) {
	for name, broken := range map[string]struct {
		status int
		url    func(i int) string
	}{
		"one page":  {500, func(int) string { return "http://backend/page" }},
		"two pages": {500, func(i int) string { return []string{"http://backend/page", "http://backend/news"}[i%2] }},
		"strangers": {500, func(i int) string {
			return fmt.Sprintf("http://backend/page/%c%c%c", 'a'+i%26, 'a'+i/26%26, 'a'+i/676%26)
		}},
		"never served": {503, func(i int) string { return "http://backend/page" }},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 1))
			failed, n, retries := 0, 0, 0
			client := mustTransport(t, TransportConfig{Base: baseFunc(func(req *http.Request) (*http.Response, error) {
				switch page := len(req.URL.Path) > 2; {
				case page && req.Header.Get("X-Envoy-Attempt-Count") != "":
					retries++
					return answer(req, broken.status, ""), nil
				case page:
					return answer(req, broken.status, ""), nil
				case r.IntN(20) == 0:
					return answer(req, 503, ""), nil
				}
				return answer(req, 200, ""), nil
			})})
			for i := range 5 * 3000 {
				url, honest := broken.url(i), r.IntN(5) == 0
				if honest {
					url = "http://backend/" + string(rune('a'+n%4))
				}
				if i < 1000 && honest && broken.status == 500 {
					continue
				}
				resp, err := client.RoundTrip(newGet(t, url))
				ok := err == nil && resp.StatusCode == 200
				if err == nil {
					resp.Body.Close()
				}
				if honest {
					n++
					if !ok {
						failed++
					}
				}
				time.Sleep(20 * time.Millisecond)
			}
			if failed*1000 > 3*n {
				t.Errorf("%s: %d of %d calls to the others failed", name, failed, n)
			}
			if broken.status == 500 && retries < 500 { // of the 1,500 that the calls earn
				t.Errorf("%s: %d retries of the page: what the others do not need is for it", name, retries)
			}
		})
	}
}

// TestCallsAfterOneFailure: when a route has recovered, a call allocates what it did before.
func TestCallsAfterOneFailure(t *testing.T) {
	fail := false
	client := mustTransport(t, TransportConfig{Base: baseFunc(func(r *http.Request) (*http.Response, error) {
		if fail {
			return answer(r, 503, ""), nil
		}
		return answer(r, 200, ""), nil
	})})
	request := newGet(t, "http://backend/orders/items/list")
	call := func() {
		if resp, err := client.RoundTrip(request); err == nil {
			resp.Body.Close()
		}
	}
	for range 100 {
		call()
	}
	before := testing.AllocsPerRun(500, call)
	fail = true
	call()
	fail = false
	for range 100 {
		call()
	}
	if after := testing.AllocsPerRun(500, call); after > before {
		t.Errorf("%v allocations after a failure, %v before", after, before)
	}
}
