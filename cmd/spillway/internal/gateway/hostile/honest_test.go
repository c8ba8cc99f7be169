package hostile

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// honest is a client as there are many: on HTTP/1.1 and HTTP/2, mostly on connections that
// it has, sometimes on new ones, with and without a body. It sends requests at its rate,
// whether they are answered or not.
type honest struct {
	url    string
	kinds  []*http.Client
	header http.Header

	mu     sync.Mutex
	took   []time.Duration
	failed map[string]int
}

// rate is that of an honest client, per second.
const rate = 100

func newHonest(address string, secure bool) *honest {
	h := &honest{url: "http://" + address + "/work", failed: make(map[string]int), header: make(http.Header)}
	first, second, fresh := &http.Transport{Protocols: new(http.Protocols), MaxIdleConnsPerHost: 8}, &http.Transport{Protocols: new(http.Protocols)}, &http.Transport{DisableKeepAlives: true}
	first.Protocols.SetHTTP1(true)
	second.Protocols.SetUnencryptedHTTP2(true)
	if secure {
		h.url = "https://" + address + "/work"
		second.Protocols = new(http.Protocols)
		second.Protocols.SetHTTP2(true)
	}
	for _, t := range []*http.Transport{first, second, first, second, fresh} {
		t.DialContext = (&net.Dialer{Timeout: 2 * time.Second}).DialContext
		t.TLSClientConfig = trusting.Clone()
		h.kinds = append(h.kinds, &http.Client{Transport: t, Timeout: 5 * time.Second})
	}
	return h
}

// run sends requests until ctx ends, and waits for the last answer.
func (h *honest) run(ctx context.Context, name string) {
	var all sync.WaitGroup
	ticks := time.NewTicker(time.Second / rate)
	defer ticks.Stop()
	for i := 0; ctx.Err() == nil; i++ {
		all.Go(func() { h.send(fmt.Sprintf("%s-%d", name, i), i) })
		select {
		case <-ctx.Done():
		case <-ticks.C:
		}
	}
	all.Wait()
	for _, c := range h.kinds {
		c.CloseIdleConnections()
	}
}

func (h *honest) send(id string, i int) {
	began := time.Now()
	problem := h.request(id, i)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.took = append(h.took, time.Since(began))
	if problem != "" {
		h.failed[problem]++
	}
}

func (h *honest) request(id string, i int) (problem string) {
	method, body := http.MethodGet, io.Reader(nil)
	if i%3 == 0 {
		method, body = http.MethodPost, strings.NewReader(strings.Repeat("x", 1000))
	}
	r, err := http.NewRequest(method, h.url, body) // the client has a timeout
	if err != nil {
		return err.Error()
	}
	r.Header = h.header.Clone()
	r.Header.Set("X-Id", id)
	resp, err := h.kinds[i%len(h.kinds)].Do(r)
	if err != nil {
		text := err.Error()
		return text[strings.LastIndex(text, ": ")+2:]
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err.Error()
	case resp.StatusCode != http.StatusOK:
		return fmt.Sprintf("%s: %.60s", resp.Status, text)
	case string(text) != "served "+id:
		return "the answer is another one's"
	}
	return ""
}

// A result is what an honest client got.
type result struct {
	sent, served int
	p99          time.Duration // of all that were sent
	failed       map[string]int
}

func (h *honest) result() result {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := result{sent: len(h.took), served: len(h.took), failed: h.failed}
	for _, n := range h.failed {
		r.served -= n
	}
	if slices.Sort(h.took); r.sent > 0 {
		r.p99 = h.took[(r.sent*99-1)/100]
	}
	return r
}

// share is how many of a hundred were served.
func (r result) share() float64 { return 100 * float64(r.served) / float64(max(1, r.sent)) }

func (r result) String() string {
	return fmt.Sprintf("%d of %d served (%.1f %%), p99 %v", r.served, r.sent, r.share(), r.p99.Round(time.Millisecond))
}
