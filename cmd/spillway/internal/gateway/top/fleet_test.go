package top

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/top/query"
)

// newFleet returns a Fleet that asks some addresses.
func newFleet(t *testing.T, timeout time.Duration, lookups []query.Lookup, addresses ...string) *Fleet {
	t.Helper()
	client, err := query.New(query.Config{Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Client: client, Window: 10 * time.Second, Lookups: lookups}
	for _, address := range addresses {
		target, err := query.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		c.Targets = append(c.Targets, target)
	}
	f := New(c)
	t.Cleanup(func() {
		f.Close()
		client.Close()
	})
	return f
}

func marshalled(t *testing.T, state map[string]any) []byte {
	t.Helper()
	text, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestThousand asks a thousand processes at once, with a bound, twice, and adds them up.
func TestThousand(t *testing.T) {
	const n = 1000
	var at, running, most atomic.Int64
	x := newFake(t, "", 10, 5)
	x.state = nil // the least, as it is read often
	first, last := marshalled(t, x.at(0)), marshalled(t, x.at(1))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		now := running.Add(1)
		defer running.Add(-1)
		for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); {
			seen = most.Load()
		}
		state := first
		if at.Load() > 0 {
			state = last
		}
		_, _ = w.Write(state)
	}))
	defer s.Close()
	var addresses []string
	for i := range n {
		addresses = append(addresses, fmt.Sprintf("%s/p%d", s.URL, i))
	}
	f := newFleet(t, time.Minute, nil, addresses...)
	f.Round(t.Context())
	at.Store(1)
	f.Round(t.Context())
	p := f.Page(time.Now())
	if p.Asked != n || p.Measured != n || most.Load() > inFlight {
		t.Fatalf("%d asked, %d measured, %d at once", p.Asked, p.Measured, most.Load())
	}
	offered := 0.0
	for i := range p.Processes {
		offered += p.Processes[i].Offered * p.Processes[i].Seconds
	}
	if math.Abs(offered-n*15) > 0.1 {
		t.Errorf("%v were offered, want 15 for each", offered)
	}
	if acme := p.Customers.Names[0]; acme.Name != "acme" || acme.Processes != n {
		t.Errorf("%+v", acme)
	}
}

// TestHurry: a process that does not answer keeps no page waiting, is asked once at a time, and has a line.
func TestHurry(t *testing.T) {
	var asked atomic.Int64
	stuck := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		<-r.Context().Done()
	}))
	x := newFake(t, "p1", 10, 0)
	good := httptest.NewServer(serve(func() map[string]any { return x.at(1) }))
	defer good.Close()
	f := newFleet(t, time.Minute, nil, stuck.URL, good.URL)
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
		f.Round(ctx)
		cancel()
	}
	p := f.Page(time.Now())
	if p.Answering != 1 || p.Asked != 2 || asked.Load() != 1 {
		t.Errorf("%d of %d answer; the other one was asked %d times", p.Answering, p.Asked, asked.Load())
	}
	f.Close() // ends the question
	stuck.Close()
	if got := written(t, p, Screen{Width: 80}); !strings.Contains(got, "no answer for 1s") {
		t.Errorf("the page is\n%s", got)
	}
}

// zone is a Resolver with one name, whose addresses change.
type zone struct {
	mu        sync.Mutex
	addresses []netip.Addr
	failing   error
}

func (z *zone) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.addresses, z.failing
}

func (z *zone) LookupSRV(context.Context, string, string, string) (string, []*net.SRV, error) {
	return "", nil, errors.New("none")
}

// TestDiscover: processes come and go with DNS; while it fails, the processes found before stay.
func TestDiscover(t *testing.T) {
	x := newFake(t, "p1", 10, 0)
	s := httptest.NewServer(serve(func() map[string]any { return x.at(1) }))
	defer s.Close()
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	z := new(zone)
	l, err := query.ParseLookup("web:"+port, z)
	if err != nil {
		t.Fatal(err)
	}
	f := newFleet(t, time.Minute, []query.Lookup{l})
	for i, row := range []struct {
		addresses      []string
		failing        error
		asked, answers int
		note           string
	}{
		{nil, nil, 0, 0, "web:" + port + " has no addresses."},
		{[]string{"127.0.0.1", "::ffff:127.0.0.1"}, nil, 1, 1, ""},
		{nil, errors.New("no \x1b server"), 1, 1, "The lookup of web:" + port + ` failed: no \x1b server.`},
		{[]string{"127.0.0.1"}, nil, 1, 1, ""},
		{nil, nil, 0, 0, "has no addresses."},
	} {
		z.mu.Lock()
		z.addresses, z.failing = nil, row.failing
		for _, a := range row.addresses {
			z.addresses = append(z.addresses, netip.MustParseAddr(a))
		}
		z.mu.Unlock()
		f.Round(t.Context())
		p := f.Page(time.Now())
		if p.Asked != row.asked || p.Answering != row.answers || !strings.Contains(strings.Join(p.Notes, " "), row.note) || row.note == "" && len(p.Notes) > 0 {
			t.Errorf("row %d: %d asked, %d answer, notes %q; want %+v", i, p.Asked, p.Answering, p.Notes, row)
		}
		before := f.found[0].asked
		f.Round(t.Context())
		if f.found[0].asked != before {
			t.Errorf("row %d: looked up again at once", i)
		}
		f.found[0].asked = before.Add(-lookupEvery)
	}
}
