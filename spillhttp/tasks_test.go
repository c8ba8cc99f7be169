package spillhttp

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/serving"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/shed"
	"github.com/seed90641741/spillway/spillhttp/internal/early"
)

const trace = "00-0af7651916cd43dd8448eb211c803105-b7ad6b7169203331-01"

// seventh is the random number that draws level 7.
func seventh() float64 { return 6.5 / spillway.Levels }

// The task of a request has the level and progress that are believed, and handlers that pass on all headers pass on no other.
func TestTaskOfARequest(t *testing.T) {
	user := HandlerConfig{Classify: func(*http.Request) spillway.Call { return spillway.Call{Level: 50} }}
	for _, row := range []struct {
		name     string
		trust    ingress.Trust
		config   HandlerConfig
		said     []string
		level    spillway.Level
		progress spillway.Progress
		keeps    bool // the headers
	}{
		{"edge", ingress.Trust{}, HandlerConfig{}, []string{headerLevel, "128", headerProgress, "9"}, 7, 0, false},
		{"edge, in the baggage", ingress.Trust{}, HandlerConfig{}, []string{headerBaggage, "level=128,progress=9"}, 7, 0, false},
		{"edge, a trace", ingress.Trust{}, HandlerConfig{}, []string{headerTrace, trace}, 7, 0, true},
		{"edge, a user", ingress.Trust{}, user, []string{headerLevel, "128", headerProgress, "9"}, 50, 0, false},
		{"internal", internal.Trust, HandlerConfig{}, []string{headerLevel, "128", headerProgress, "9"}, 128, 9, true},
		{"internal, in the baggage", internal.Trust, HandlerConfig{}, []string{headerBaggage, "a=1,level=9,progress=2"}, 9, 2, true},
		{"internal, progress alone", internal.Trust, HandlerConfig{}, []string{headerProgress, "9"}, 7, 0, false},
		{"internal, no level", internal.Trust, HandlerConfig{}, []string{headerLevel, "129"}, 7, 0, false},
		{"internal, no level but a trace", internal.Trust, HandlerConfig{}, []string{headerLevel, "129", headerTrace, trace}, 6, 0, false},
		{"internal, a trace", internal.Trust, HandlerConfig{}, []string{headerTrace, trace}, 6, 0, true},
		{"internal, a user", internal.Trust, user, []string{headerTrace, trace}, 50, 0, true},
		{"internal, a user and a level", internal.Trust, user, []string{headerLevel, "3"}, 3, 0, true},
	} {
		var task *spillway.Task
		var got http.Header
		h := mustHandler(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			task, got = spillway.TaskFrom(r.Context()), r.Header
		}), ingress.Config{Trust: row.trust, Rand: seventh}, row.config)
		r := incoming(t, row.said...)
		h.ServeHTTP(httptest.NewRecorder(), r)
		if task.Level() != row.level || task.Progress() != row.progress {
			t.Errorf("%s: level %d, progress %d, want %d and %d", row.name, task.Level(), task.Progress(), row.level, row.progress)
		}
		for _, key := range row.said[:1] {
			if kept := slices.Equal(got.Values(key), r.Header.Values(key)); kept != row.keeps {
				t.Errorf("%s: %s is %q", row.name, key, got.Values(key))
			}
		}
	}
}

// While half of a class is rejected, its lowest levels are. Strangers who invent a level and progress are rejected as all others.
func TestStrangersInventNoLevel(t *testing.T) {
	for _, row := range []struct {
		trust ingress.Trust
		said  []string
		code  int
	}{
		{ingress.Trust{}, nil, 503}, {ingress.Trust{}, []string{headerLevel, "128", headerProgress, "9"}, 503},
		{ingress.Trust{}, []string{headerBaggage, "level=128,progress=9"}, 503}, {internal.Trust, []string{headerLevel, "128"}, 200},
		{internal.Trust, []string{headerLevel, "1", headerProgress, "9"}, 200}, {internal.Trust, []string{headerLevel, "1"}, 503},
	} {
		h := mustHandler(t, http.NotFoundHandler(), ingress.Config{Load: utilization(halfOfCritical), Trust: row.trust, Rand: seventh}, HandlerConfig{})
		w := httptest.NewRecorder()
		h.ServeHTTP(w, incoming(t, row.said...))
		if rejected := w.Code == http.StatusServiceUnavailable; rejected != (row.code == 503) {
			t.Errorf("%v, %q: %d, want %d", row.trust.Boundary, row.said, w.Code, row.code)
		}
	}
}

// halfOfCritical is the utilization at which half of the requests of the class CRITICAL are rejected.
var halfOfCritical = shed.DefaultThresholds[spillway.Critical.Index()] + 0.025

// Each call says the level of the task and how many were served before it, to services of one's own.
func TestTaskOfCalls(t *testing.T) {
	var got []string
	base := baseFunc(func(req *http.Request) (*http.Response, error) {
		got = append(got, strings.Join(slices.Concat(req.Header[headerLevel], req.Header[headerProgress], req.Header[headerBaggage]), " "))
		code := http.StatusOK
		if n := len(got); n == 2 || n == 3 {
			code = http.StatusServiceUnavailable
		}
		return answer(req, code, ""), nil
	})
	rt := mustTransport(t, TransportConfig{
		Base: base, External: func(r *http.Request) bool { return r.URL.Host != "backend.example" },
		Egress: egress.Config{Retry: must(retry.NewBudgeted(retry.BudgetedConfig{Budget: retry.Unlimited{}, MaxAttempts: 1})), ThrottleMode: spillway.ModeOff},
	})
	var task spillway.Task
	task.Begin(7, 0)
	ctx := spillway.WithTask(t.Context(), &task)
	for range 4 { // the second and the third fail
		roundTrip(t, rt, newRequest(t, ctx, http.MethodGet, nil))
	}
	passes := newRequest(t, ctx, http.MethodGet, nil) // as a proxy does, with the headers that came in
	passes.Header = http.Header{headerLevel: {"7"}, headerProgress: {"0"}}
	roundTrip(t, rt, passes)
	roundTrip(t, rt, newRequest(t, spillway.WithCriticality(ctx, spillway.Sheddable), http.MethodGet, nil))
	others := newRequest(t, ctx, http.MethodGet, nil)
	others.Header = http.Header{headerLevel: {"7"}, headerProgress: {"2"}, headerBaggage: {"level=7"}}
	others.URL.Host = "others.example"
	roundTrip(t, rt, others)
	roundTrip(t, rt, newRequest(t, t.Context(), http.MethodGet, nil))
	if want := []string{"7", "7 1", "7 1", "7 1", "7 2", "7 3 criticality=SHEDDABLE,level=7", "", ""}; !slices.Equal(got, want) {
		t.Errorf("sent %q, want %q", got, want)
	}
	if task.Progress() != 5 {
		t.Errorf("progress %d, want 5", task.Progress())
	}
	if got := passes.Header[headerProgress]; !slices.Equal(got, []string{"0"}) {
		t.Errorf("the header of the caller became %q", got)
	}
}

// A call counts once, however many attempts it took, and not if it was not served.
func TestProgressCountsCalls(t *testing.T) {
	lost := errors.New("reset by peer")
	for name, row := range map[string]struct {
		egress egress.Config
		base   http.RoundTripper
		want   spillway.Progress
	}{
		"served":         {eager, script(status(200)), 1},
		"not found":      {eager, script(status(404)), 1},
		"with a retry":   {eager, script(status(503, headerOverloaded, "true"), status(200)), 1},
		"rejected there": {eager, script(status(503, headerShouldRetry, "false")), 0},
		"lost":           {eager, script(fails(lost), fails(lost), fails(lost)), 0},
		"rejected here":  {egress.Config{MaxInFlight: 1}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var task spillway.Task
				task.Begin(7, 0)
				ctx := spillway.WithTask(t.Context(), &task)
				if row.base == nil {
					row.base = baseFunc(func(req *http.Request) (*http.Response, error) { return answer(req, 200, "held"), nil })
				}
				rt := mustTransport(t, TransportConfig{Base: row.base, Egress: row.egress})
				if row.want == 0 && row.egress.MaxInFlight == 1 { // another request holds the only slot
					resp, err := rt.RoundTrip(newRequest(t, t.Context(), http.MethodGet, nil))
					if err != nil {
						t.Fatal(err)
					}
					defer resp.Body.Close()
				}
				if resp, err := rt.RoundTrip(newRequest(t, ctx, http.MethodGet, nil)); err == nil {
					resp.Body.Close()
				}
				if task.Progress() != row.want {
					t.Errorf("progress %d, want %d", task.Progress(), row.want)
				}
			})
		})
	}
}

// A hedge and the attempt that it doubles are one call.
func TestHedgeCountsOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		said := make(chan string, 2)
		base := baseFunc(func(req *http.Request) (*http.Response, error) {
			if level := req.Header.Get(headerLevel); level != "" {
				said <- level
				time.Sleep(time.Second)
			}
			return answer(req, 200, ""), nil
		})
		hedged := eager
		hedged.Hedge = retry.HedgeConfig{Delay: 50 * time.Millisecond}
		rt := mustTransport(t, TransportConfig{Base: base, Egress: hedged})
		for range 100 { // which pay for the hedge
			roundTrip(t, rt, newRequest(t, t.Context(), http.MethodGet, nil))
		}
		var task spillway.Task
		task.Begin(7, 0)
		roundTrip(t, rt, newRequest(t, spillway.WithTask(t.Context(), &task), http.MethodGet, nil))
		time.Sleep(time.Second) // until the other attempt has ended, too
		if task.Progress() != 1 || len(said) != 2 {
			t.Errorf("progress %d after %d attempts, want 1 after 2", task.Progress(), len(said))
		}
	})
}

// A request that the connection lets pass is served with the level that it passed with: a second draw would reject some of the few
// that passed.
func TestLevelIsDrawnOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		draws := 0
		config := ingress.Config{Load: utilization(0), Rand: func() float64 { draws++; return float64(draws) / spillway.Levels }}
		var levels []spillway.Level
		h := mustHandler(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			levels = append(levels, spillway.TaskFrom(r.Context()).Level())
		}), config, HandlerConfig{})
		h.looks.Store(1 << 40)
		before := draws
		get := "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
		play(t, newSender(get, get, get), h, true)
		first := spillway.Level(before) + 2
		if want := []spillway.Level{first, first + 1, first + 2}; !slices.Equal(levels, want) {
			t.Errorf("served with levels %v, want %v", levels, want)
		}
	})
}

// A request that is rejected early needs no memory for its level or trace.
func TestEarlyLevelAllocatesNothing(t *testing.T) {
	for _, said := range []string{"x-request-level: 101\r\nx-request-progress: 77", "traceparent: " + trace} {
		heads := [2][]byte{}
		for i := range heads {
			heads[i] = []byte("GET / HTTP/1.1\r\nHost: a\r\n" + strings.Replace(said, "1", string('1'+rune(i)), 1) + "\r\n\r\n")
		}
		var level spillway.Level
		arrive := arrivals(viewer(func(x *early.Head) {
			c := memoOf(x).claimed(x)
			level = max(c.Level, c.TraceLevel)
		}))
		var levels [2]spillway.Level
		n := testing.AllocsPerRun(100, func() {
			for i, b := range heads {
				if !arrive(b, nil) {
					t.Fatal("not a head")
				}
				levels[i] = level
			}
		})
		if n > 0 || !levels[0].Valid() {
			t.Errorf("%q: %v allocations, levels %d", said, n, levels)
		}
	}
}

// The task costs no memory of its own.
func TestTaskAllocatesNothing(t *testing.T) {
	c := new(serving.Context)
	c.Begin(context.Background(), &arrival{Call: spillway.Call{Level: 7, Progress: 1}}, 0)
	if n := testing.AllocsPerRun(100, func() { spillway.TaskFrom(c).Served() }); n > 0 || spillway.TaskFrom(c).Level() != 7 {
		t.Errorf("%v allocations, level %d", n, spillway.TaskFrom(c).Level())
	}
}
