package spilladmin_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/admin/runbook"
	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
	"github.com/seed90641741/spillway/spilladmin"
)

// limited is a server with one request per hour, after a burst of ten.
func limited() ingress.Config {
	return ingress.Config{RateLimit: ratelimit.Config{Rate: 1. / 3600, BurstSeconds: 36000}}
}

type callerKey struct{}

// TestPage: what a server admits, serves and rejects is on the page: by class, reason, customer and caller.
func TestPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPage(t, spilladmin.Config{Name: "shop-1", Version: "v7", Caller: func(ctx context.Context) string {
			name, _ := ctx.Value(callerKey{}).(string)
			return name
		}})
		s := newServer(t, p, limited())
		next(t, p)
		for i := range 30 {
			ctx := context.WithValue(t.Context(), callerKey{}, "billing")
			call := spillway.Call{Key: "GET /cart", Customer: "acme", Criticality: spillway.Sheddable}
			if slot, r := s.Enter(ctx, call, ratelimit.Caller{}); !r.Rejected() {
				slot.Done([]spillway.Outcome{spillway.OutcomeServed, spillway.OutcomeFailed}[i%2])
			}
		}
		st := next(t, p)
		if st.Name != "shop-1" || st.Program != "library" || st.Version != "v7" || st.Mode != "enforce" || len(st.Gates) != 1 || st.Gates[0].Listener != "shop" {
			t.Errorf("%+v", st)
		}
		m := st.Mean
		if sum := m.Goodput + m.Failed + m.Rejected[0]; m.Goodput == 0 || m.Goodput != m.Failed || m.Rejected[0] != 4*m.Goodput || m.Offered != sum {
			t.Errorf("%+v", m)
		}
		if len(st.Reasons) < 2 || st.Reasons[0].Policy != "ratelimit" || st.Verdict.Headline != "The rate limit rejects requests." || st.Verdict.Do == "" {
			t.Errorf("%+v, %+v", st.Reasons, st.Verdict)
		}
		for name, rows := range map[string]string{
			"acme": fmt.Sprint(st.Top.Customers.Rows), "GET /cart": fmt.Sprint(st.Top.Routes.Rows), "billing": fmt.Sprint(st.Top.Callers.Rows),
		} {
			if want := "[{" + name + " rate_limit SHEDDABLE 20}]"; rows != want {
				t.Errorf("top is %s, want %s", rows, want)
			}
		}
		for path, want := range map[string]string{
			"/debug/accounts": "rejected             20", "/debug/decisions": "settings: ingress.Config.RateLimit", "/debug/top": "acme",
			"/debug/limits": "shop", "/debug/queues": "shop", "/debug/quotas": "CUSTOMER", "/healthz": "ok", "/readyz": "ready", "/": "<title>Spillway",
		} {
			if w := ask(t, p, http.MethodGet, path, here); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s has no %q: %d %s", path, want, w.Code, w.Body)
			}
		}
	})
}

// TestObserveMode: a gate that observes rejects nothing, and the page counts what was served.
func TestObserveMode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPage(t, spilladmin.Config{})
		c := limited()
		c.RateLimitMode, c.ShedMode = spillway.ModeObserve, spillway.ModeObserve
		s := newServer(t, p, c)
		for range 100 {
			serve(s, spillway.Call{})
		}
		st := next(t, p)
		if st.Mean.Goodput == 0 || st.Mean.Goodput != st.Mean.Offered || st.Mode != "observe" || !strings.Contains(st.Verdict.Do, "spillway.ModeEnforce") {
			t.Errorf("%+v", st)
		}
	})
}

// client is a Client of one backend.
type client struct{ *egress.Pool }

func (c client) Stats(now time.Time) map[string]egress.Stats { return c.Pool.Stats(now) }

// TestClientsOnly: a program without servers shows the calls of its clients.
func TestClientsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPage(t, spilladmin.Config{})
		pool, err := egress.NewPool(egress.Config{Observer: p}, 0)
		if err != nil {
			t.Fatal(err)
		}
		p.AddClient(client{pool})
		for i := range 20 {
			_ = pool.For("payments").Do(t.Context(), spillway.Call{Key: "payments"}, func(context.Context, *egress.Attempt) error {
				time.Sleep(time.Millisecond)
				return []error{nil, nil, nil, errors.New("down")}[i%4]
			})
		}
		st := next(t, p)
		if len(st.Clusters) != 1 || st.Clusters[0].Name != "payments" || st.Mean.Goodput == 0 || st.Mean.P50 == nil {
			t.Errorf("%+v", st)
		}
		if m := st.Mean; m.Goodput != 3*m.Failed || m.Offered != m.Goodput+m.Failed {
			t.Errorf("%+v", m)
		}
	})
}

// TestQuota: the customers of a quota are shown.
func TestQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPage(t, spilladmin.Config{})
		local, err := quota.NewLocal(quota.LocalConfig{DefaultLimit: quota.Limit{Rate: 5}})
		if err != nil {
			t.Fatal(err)
		}
		s := newServer(t, p, ingress.Config{Quota: quota.Config{Allocator: local}})
		serve(s, spillway.Call{Customer: "acme"})
		if st := next(t, p); !strings.Contains(fmt.Sprint(st.Customers), "acme") {
			t.Errorf("%+v", st.Customers)
		}
	})
}

// TestWhoMayRead asks from here and from elsewhere, with and without a token.
func TestWhoMayRead(t *testing.T) {
	const token = "0123456789abcdef"
	for name, row := range map[string]struct {
		config  spilladmin.Config
		method  string
		at      int
		headers []string
		want    int
	}{
		"from here":          {want: 200},
		"from elsewhere":     {at: 1, want: 403},
		"forwarded":          {headers: []string{"X-Forwarded-For", "192.0.2.1"}, want: 403},
		"another name":       {headers: []string{"Host", "evil.example"}, want: 403},
		"a given name":       {config: spilladmin.Config{Hosts: []string{"ops.example"}}, headers: []string{"Host", "ops.example:8001"}, want: 200},
		"another site":       {headers: []string{"Sec-Fetch-Site", "cross-site"}, want: 403},
		"another origin":     {headers: []string{"Origin", "https://evil.example"}, want: 403},
		"change":             {method: http.MethodPost, want: 405},
		"no token":           {config: spilladmin.Config{Token: token}, want: 401},
		"wrong token":        {config: spilladmin.Config{Token: token}, headers: []string{"Authorization", "Bearer no"}, want: 401},
		"token":              {config: spilladmin.Config{Token: token}, at: 1, headers: []string{"Authorization", "Bearer " + token}, want: 200},
		"token, forwarded":   {config: spilladmin.Config{Token: token}, headers: []string{"Authorization", "Bearer " + token, "Via", "1.1 a"}, want: 200},
		"token, other names": {config: spilladmin.Config{Token: token}, headers: []string{"Authorization", "Bearer " + token, "Host", "evil.example"}, want: 403},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPage(t, row.config)
			at := here
			if row.at != 0 {
				at = there
			}
			for _, path := range []string{"/", "/api/v1/state", "/debug/top"} {
				method := row.method
				if method == "" {
					method = http.MethodGet
				}
				w := ask(t, p, method, path, at, row.headers...)
				if w.Code != row.want || w.Header().Get("Access-Control-Allow-Origin") != "" {
					t.Errorf("%s: %d, want %d: %s", path, w.Code, row.want, w.Body)
				}
			}
		})
	}
	if _, err := spilladmin.New(spilladmin.Config{Token: "short"}); err == nil || !strings.Contains(err.Error(), "Token has 5 characters, must have 16") {
		t.Errorf("a short token: %v", err)
	}
}

// broken is a server whose Stats panic.
type broken struct{}

func (broken) Stats(time.Time) ingress.Stats { panic("not ready") }

// TestPanics: a Stats method or a Caller that panics ends nothing.
func TestPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPage(t, spilladmin.Config{Caller: func(context.Context) string { panic("no caller") }})
		p.AddServer("broken", broken{})
		s := newServer(t, p, limited())
		for range 20 {
			serve(s, spillway.Call{})
		}
		st := next(t, p)
		if len(st.Notices) != 1 || st.Notices[0].Headline != "The levels of the server broken cannot be read." || !strings.Contains(st.Notices[0].Text, "not ready") {
			t.Errorf("%+v", st.Notices)
		}
		if len(st.Gates) != 1 || st.Mean.Rejected[2] == 0 {
			t.Errorf("%+v", st)
		}
	})
}

// counter is an EndObserver.
type counter struct{ events, ends atomic.Int64 }

func (c *counter) Observe(spillway.Event)    { c.events.Add(1) }
func (c *counter) ObserveEnd(spillway.Event) { c.ends.Add(1) }

// TestNext: another observer receives what the page receives.
func TestNext(t *testing.T) {
	var c counter
	p := newPage(t, spilladmin.Config{Next: &c})
	s := newServer(t, p, ingress.Config{})
	serve(s, spillway.Call{})
	p.Observe(spillway.Event{Policy: "hedge"})
	if c.events.Load() != 2 || c.ends.Load() != 1 {
		t.Errorf("%d events and %d ends", c.events.Load(), c.ends.Load())
	}
}

// TestClose: a stream ends with the page, so that the server that serves it can shut down.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := spilladmin.New(spilladmin.Config{})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan string)
		go func() { done <- ask(t, p, http.MethodGet, "/api/v1/stream", here).Body.String() }()
		time.Sleep(2500 * time.Millisecond)
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if text := <-done; strings.Count(text, "event: ") < 3 || !strings.HasPrefix(text, "retry: 2000\nevent: history\n") {
			t.Errorf("%d events", strings.Count(text, "event: "))
		}
		p.Observe(spillway.Event{Policy: "shed"})
	})
}

func events() map[string]func(i int) (spillway.Event, spillway.Event) {
	names := make([]string, 1<<12)
	for i := range names {
		names[i] = fmt.Sprint("/carts/", i)
	}
	now := time.Now()
	served := spillway.Event{Time: now, Policy: "shed", Latency: time.Millisecond, Outcome: spillway.OutcomeServed, Call: spillway.Call{Key: "GET /", Deadline: now.Add(time.Second)}, Context: context.Background()}
	called := served
	called.Policy = "retry"
	rejected := spillway.Rejection(&spillway.RejectedError{Policy: "shed", Reason: spillway.ReasonQueueFull})
	rejected.Time, rejected.Policy, rejected.Context = now, "shed", context.Background()
	return map[string]func(int) (spillway.Event, spillway.Event){
		"served": func(int) (spillway.Event, spillway.Event) { return served, served },
		"called": func(int) (spillway.Event, spillway.Event) { return called, served },
		"rejected, all names new": func(i int) (spillway.Event, spillway.Event) {
			e := rejected
			e.Call.Key, e.Call.Customer = names[i%len(names)], names[(i+1)%len(names)]
			return e, e
		},
	}
}

// TestAllocs: an event costs no allocation, except for the samples of one second.
func TestAllocs(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	p := newPage(t, spilladmin.Config{Caller: func(context.Context) string { return "billing" }})
	for name, event := range events() {
		i := 0
		observe := func() {
			i++
			e, end := event(i)
			p.Observe(e)
			p.ObserveEnd(end)
		}
		for range 100 { // the samples of this second
			observe()
		}
		if n := testing.AllocsPerRun(1000, observe); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// BenchmarkObserve is the cost of one decision and one end.
func BenchmarkObserve(b *testing.B) {
	for name, event := range events() {
		b.Run(name, func(b *testing.B) {
			p := newPage(b, spilladmin.Config{})
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				i++
				e, end := event(i)
				p.Observe(e)
				p.ObserveEnd(end)
			}
		})
	}
}

// TestMemory: names of a kilobyte, none of them twice, are not kept, whichever name it is.
func TestMemory(t *testing.T) {
	p := newPage(t, spilladmin.Config{Caller: func(ctx context.Context) string { name, _ := ctx.Value(callerKey{}).(string); return name }})
	pad := strings.Repeat("x", 1000)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for i := range 50_000 {
		name := fmt.Sprint(i, pad)
		e := spillway.Event{
			Time: time.Unix(int64(i)/100, 0), Policy: []string{"quota", "throttle", "retry"}[i%3], Rejected: true, Reason: spillway.ReasonQuota,
			Call: spillway.Call{Key: name, Customer: name}, Context: context.WithValue(t.Context(), callerKey{}, name),
		}
		p.Observe(e)
		p.ObserveEnd(e)
	}
	if after := heap(); after > before+4<<20 {
		t.Errorf("%d bytes of 50 MB are kept", after-before)
	}
	runtime.KeepAlive(p)
}

// TestSettingsExist: what the page says to look at are fields of Config structs.
func TestSettingsExist(t *testing.T) {
	configs := map[string]reflect.Type{
		"ingress": reflect.TypeFor[ingress.Config](), "egress": reflect.TypeFor[egress.Config](), "shed": reflect.TypeFor[shed.Config](),
		"concurrency": reflect.TypeFor[concurrency.Config](),
	}
	field := regexp.MustCompile(`\b(\w+)\.Config\.(\w+)`)
	n := 0
	for _, text := range runbook.LibraryTexts() {
		for _, m := range field.FindAllStringSubmatch(text, -1) {
			n++
			if of, ok := configs[m[1]]; !ok {
				t.Errorf("%s: no such package", m[0])
			} else if _, ok := of.FieldByName(m[2]); !ok {
				t.Errorf("there is no field %s", m[0])
			}
		}
	}
	if n < 15 {
		t.Errorf("%d fields, want at least 15", n)
	}
}

// TestWithoutEnds: a page that another observer hides from the server says so.
func TestWithoutEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPage(t, spilladmin.Config{})
		s, err := ingress.New(ingress.Config{Observer: spillway.ObserverFunc(p.Observe)})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		p.AddServer("shop", s)
		for range 200 {
			serve(s, spillway.Call{})
		}
		if st := next(t, p); st.Verdict.Headline != "The page does not learn how requests end." || !strings.Contains(st.Verdict.Text, "Config.Next") {
			t.Errorf("%+v", st.Verdict)
		}
	})
}
