package spillhttp

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/attempts"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/race"
)

func TestHandlerConfig(t *testing.T) {
	if _, err := NewHandler(nil, HandlerConfig{}); err == nil || err.Error() != "spillhttp: next is nil, must be a Handler" {
		t.Errorf("without a Handler: %v", err)
	}
	h, err := NewHandler(bare, HandlerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, incoming(t))
	if err := h.Close(); err != nil || w.Code != 204 {
		t.Errorf("%d, %v", w.Code, err)
	}
	shared := mustHandler(t, bare, ingress.Config{}, HandlerConfig{})
	if err := shared.Close(); err != nil {
		t.Error(err) // its Server is closed at the end of the test, which must not be the second time
	}
}

// TestClassesAreRejectedInOrder: what a request is worth is what the server knows
// and as much of what it says as is believed.
func TestClassesAreRejectedInOrder(t *testing.T) {
	batch := func(r *http.Request) (c spillway.Call) {
		if r.URL.Path == "/batch" {
			c.Criticality = spillway.SheddablePlus
		}
		return c
	}
	everyWay(t, func(t *testing.T, protocol string, early bool) {
		h := mustHandler(t, bare, busy, HandlerConfig{Classify: batch, HealthPaths: []string{"/healthz"}})
		h.looks.Store(lookOn)
		s := open(t, protocol, h, early)
		defer s.close()
		for _, row := range []struct {
			path, label string
			want        int
		}{
			{"/", "", 204},
			{"/", "SHEDDABLE", 503},
			{"/", "sheddable_plus", 503},
			{"/", "CRITICAL_PLUS", 204},
			{"/batch", "", 503},
			{"/batch", "CRITICAL_PLUS", 503},
			{"/healthz", "SHEDDABLE", 204},
			{"/healthz/", "SHEDDABLE", 503},
			{"/healthz/..;/batch", "SHEDDABLE", 503},
			{"/healthzebra", "SHEDDABLE", 503},
			{"/livez", "SHEDDABLE", 503}, // which nobody has named
			{"/metrics", "SHEDDABLE", 503},
			{"/grpc.health.v1.Health/Check", "SHEDDABLE", 503},
		} {
			r := newRequest(t, t.Context(), http.MethodGet, nil)
			r.URL.Path = row.path
			if row.label != "" {
				r.Header.Set(headerCriticality, row.label)
			}
			resp := must(s.base.RoundTrip(r))
			if readAll(t, resp); resp.StatusCode != row.want {
				t.Errorf("%s %q: %d, want %d", row.path, row.label, resp.StatusCode, row.want)
			}
		}
		nothingLeft(t, h)
	})
}

// TestEndToEnd follows a call through two servers: the claims that the first server receives
// reach the second through its context, and a retry carries its attempt number.
func TestEndToEnd(t *testing.T) {
	everyWay(t, func(t *testing.T, protocol string, early bool) {
		var seen journal
		inside := internal
		inside.Observer, inside.Shed = &seen, patient
		rejections := 1
		back := open(t, protocol, mustHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if rejections--; rejections >= 0 {
				w.Header().Set("Retry-After", "1") // without a scope, it is for the whole backend
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			deadline, _ := r.Context().Deadline()
			fmt.Fprint(w, spillway.CriticalityFrom(r.Context()), " ", time.Until(deadline).Round(time.Second))
		}), inside, HandlerConfig{}), early)
		defer back.close()
		outgoing := mustTransport(t, TransportConfig{Base: back.base, Egress: eager})
		front := open(t, protocol, mustHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			resp, err := outgoing.RoundTrip(newRequest(t, r.Context(), http.MethodGet, nil))
			if err != nil {
				t.Error(err)
				return
			}
			w.WriteHeader(resp.StatusCode)
			_, _ = io.Copy(w, resp.Body)
			resp.Body.Close()
		}), ingress.Config{Shed: patient}, HandlerConfig{}), early)
		defer front.close()

		ctx, cancel := context.WithTimeout(spillway.WithCriticality(t.Context(), spillway.Sheddable), 20*time.Second)
		defer cancel()
		client := mustTransport(t, TransportConfig{Base: front.base, Egress: eager})
		resp, err := client.RoundTrip(newRequest(t, ctx, http.MethodGet, nil))
		if err != nil {
			t.Fatal(err)
		}
		if got := readAll(t, resp); resp.StatusCode != 200 || got != "SHEDDABLE 19s" {
			t.Errorf("%d %q, want SHEDDABLE with the 19 s that are left after the wait", resp.StatusCode, got)
		}
		synctest.Wait()
		for i, e := range seen.take() {
			if e.Call.Attempt != int16(i) || e.Call.Criticality != spillway.Sheddable {
				t.Errorf("attempt %d: %+v", i, e.Call)
			}
		}
	})
}

// TestDontRetryTravels: a server that sees many retries ends them.
func TestDontRetryTravels(t *testing.T) {
	everyWay(t, func(t *testing.T, protocol string, early bool) {
		config := swamped
		config.Trust.Boundary = ingress.Internal
		config.Attempts = attempts.Config{MinRequests: 4, Share: 0.3}
		h := mustHandler(t, bare, config, HandlerConfig{})
		s := open(t, protocol, h, early)
		defer s.close()
		client := mustTransport(t, TransportConfig{Base: s.base, Egress: eager})
		for range 20 {
			roundTrip(t, client, newRequest(t, t.Context(), http.MethodGet, nil))
		}
		stats := h.ingress.Stats(time.Now())
		if n := stats.Shed.Classes[spillway.Critical.Index()].RejectedTotal; n < 20 || n > 35 {
			t.Errorf("%d attempts at 20 calls, want few retries: with all there are 60", n)
		}
	})
}

// TestOutcomes: what the policies learn of each end that a request may have.
func TestOutcomes(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/fails":
			w.WriteHeader(500)
		case "/early-hints":
			w.WriteHeader(103)
			w.WriteHeader(404)
		case "/panics":
			panic("on purpose")
		case "/aborts":
			panic(http.ErrAbortHandler)
		case "/waits":
			<-r.Context().Done()
		case "/forwards": // as a reverse proxy, which can send the answer to nobody
			<-r.Context().Done()
			panic(http.ErrAbortHandler)
		}
	})
	everyWay(t, func(t *testing.T, protocol string, early bool) {
		var seen journal
		config := internal
		config.Observer, config.Shed = &seen, patient
		h := mustHandler(t, handler, config, HandlerConfig{})
		s := open(t, protocol, h, early)
		defer s.close()
		for _, row := range []struct {
			path    string
			timeout string // told, but not kept
			leaves  time.Duration
			want    spillway.Outcome
			status  int // 0: no answer
		}{
			{"/", "", time.Hour, spillway.OutcomeServed, 200},
			{"/fails", "", time.Hour, spillway.OutcomeFailed, 500},
			{"/early-hints", "", time.Hour, spillway.OutcomeServed, 404},
			{"/panics", "", time.Hour, spillway.OutcomeFailed, 0},
			{"/aborts", "", time.Hour, spillway.OutcomeFailed, 0},
			{"/waits", "", time.Minute, spillway.OutcomeAbandoned, 0},
			{"/forwards", "", time.Minute, spillway.OutcomeAbandoned, 0},
			{"/waits", "2000", time.Hour, spillway.OutcomeTimedOut, 200},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), row.leaves)
			r := newRequest(t, ctx, http.MethodPost, nil) // which nobody sends again
			r.URL.Path = row.path
			if row.timeout != "" {
				r.Header.Set(headerDeadline, row.timeout)
			}
			status := 0
			if resp, err := s.base.RoundTrip(r); err == nil {
				status = resp.StatusCode
				readAll(t, resp)
			}
			cancel()
			synctest.Wait()
			events := seen.take()
			if status != row.status || len(events) != 1 || events[0].Outcome != row.want {
				t.Errorf("%s: %d, %+v; want %d, %v", row.path, status, events, row.status, row.want)
			}
			nothingLeft(t, h)
		}
	})
}

// TestObserveChangesNothing: with every gate in Observe the answers are the same as without a
// Handler, and observers see the decisions of Enforce.
func TestObserveChangesNothing(t *testing.T) {
	const header = "X-Number"
	numbered := HandlerConfig{Classify: func(r *http.Request) spillway.Call {
		return spillway.Call{Key: r.Header.Get(header)}
	}}
	everyWay(t, func(t *testing.T, protocol string, early bool) {
		var rejected [2]map[string]bool // by number
		for i, mode := range []spillway.Mode{spillway.ModeEnforce, spillway.ModeObserve} {
			var seen journal
			config := busy
			config.Observer, config.ShedMode, config.QuotaMode, config.RateLimitMode = &seen, mode, mode, mode
			h := mustHandler(t, echo, config, numbered)
			h.looks.Store(lookOn)
			protected, without := open(t, protocol, h, early), open(t, protocol, echo, false)
			for n := range 40 {
				exchange := func(s *site) string {
					r := newRequest(t, t.Context(), http.MethodPut, strings.NewReader(strings.Repeat("x", n)))
					r.Header.Set(headerCriticality, spillway.Criticality(n%4-2).String())
					r.Header.Set(header, strconv.Itoa(n))
					resp := must(s.base.RoundTrip(r))
					resp.Header.Del("Date")
					return fmt.Sprint(resp.StatusCode, " ", headerText(resp.Header), " ", readAll(t, resp))
				}
				if got, want := exchange(protected), exchange(without); mode == spillway.ModeObserve && got != want {
					t.Errorf("%q, want %q", got, want)
				}
			}
			synctest.Wait()
			rejected[i] = map[string]bool{}
			for _, e := range seen.take() {
				rejected[i][e.Call.Key] = e.Rejected
			}
			protected.close()
			without.close()
		}
		if len(rejected[0]) != 40 || !maps.Equal(rejected[0], rejected[1]) {
			t.Errorf("observed %v, want as enforced %v", rejected[1], rejected[0])
		}
	})
}

// echo answers in a way that depends on the request.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("X-Method", r.Method)
	w.WriteHeader(200 + len(body)%3)
	_, _ = w.Write(body)
})

// TestBurst: many connections at once; some leave, some send slowly, some never read.
func TestBurst(t *testing.T) {
	const conns = 2000
	synctest.Test(t, func(t *testing.T) {
		h := mustHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-time.After(time.Millisecond):
			case <-r.Context().Done():
			}
			fmt.Fprint(w, "done")
		}), ingress.Config{}, HandlerConfig{})
		s := open(t, "HTTP1", h, true)
		s.server.ReadHeaderTimeout, s.server.WriteTimeout = time.Second, time.Second
		var answers, others int
		done := make(chan bool)
		for i := range conns {
			go func() {
				c := must(s.network.dial(t.Context(), "", ""))
				defer c.Close()
				const text = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
				switch i % 8 {
				case 0: // slow
					fmt.Fprint(c, text[:10])
					time.Sleep(2 * time.Second)
				case 1: // leaves
					fmt.Fprint(c, text)
				case 2: // never reads
					fmt.Fprint(c, text)
					time.Sleep(5 * time.Second)
				default:
					fmt.Fprint(c, text)
					resp, err := http.ReadResponse(bufio.NewReader(c), nil)
					done <- err == nil && (resp.StatusCode == 200 || resp.StatusCode == 503)
					return
				}
				done <- false
			}()
		}
		for range conns {
			if <-done {
				answers++
			} else {
				others++
			}
		}
		if answers != conns*5/8 {
			t.Errorf("%d answers and %d without, want %d", answers, others, conns*5/8)
		}
		synctest.Wait()
		nothingLeft(t, h)
		s.close()
	})
}

// TestUpdate: modes change while requests are served.
func TestUpdate(t *testing.T) {
	h := mustHandler(t, bare, swamped, HandlerConfig{})
	status := func() int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, incoming(t))
		return w.Code
	}
	for _, row := range []struct {
		mode spillway.Mode
		want int
	}{{spillway.ModeEnforce, 503}, {spillway.ModeObserve, 204}, {spillway.ModeOff, 204}, {spillway.ModeEnforce, 503}} {
		config := swamped
		config.ShedMode = row.mode
		if err := h.ingress.Update(config); err != nil {
			t.Fatal(err)
		}
		if got := status(); got != row.want {
			t.Errorf("%v: %d, want %d", row.mode, got, row.want)
		}
	}
}

// The memory of a request fills one of the sizes that Go allocates: with a byte more, a request
// takes 32 more.
func TestSizeOfARequest(t *testing.T) {
	const most = 416
	if size := unsafe.Sizeof(servedRequest{}); size > most {
		t.Errorf("%d bytes, want at most %d", size, most)
	}
}

func TestHandlerAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	count := func(h http.Handler, r *http.Request) float64 {
		w := nowhere{http.Header{}}
		return testing.AllocsPerRun(200, func() { h.ServeHTTP(w, r) })
	}
	inside := mustHandler(t, bare, internal, HandlerConfig{})
	rejecting := mustHandler(t, bare, swamped, HandlerConfig{})
	posting := incoming(t, headerCriticality, "CRITICAL_PLUS", headerDeadline, "5000")
	posting.Method, posting.Body = http.MethodPost, io.NopCloser(strings.NewReader("hello"))
	for _, row := range []struct {
		name    string
		handler http.Handler
		request *http.Request
		most    float64
	}{
		{"exempt", inside, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/healthz", nil), 0},
		{"plain", inside, incoming(t), 1},
		{"labelled", inside, incoming(t, headerCriticality, "CRITICAL_PLUS", headerAttempt, "2"), 1},
		{"deadline", inside, incoming(t, headerCriticality, "CRITICAL_PLUS", headerDeadline, "5000"), 1},
		{"task", inside, incoming(t, headerLevel, "101", headerProgress, "77"), 1},
		{"trace", inside, incoming(t, headerTrace, trace), 1},
		{"body", inside, posting, 1},
		{"rejected", rejecting, incoming(t, headerCriticality, "SHEDDABLE"), 1},
	} {
		if n := count(row.handler, row.request); n > row.most {
			t.Errorf("%s: %v allocations, want at most %v", row.name, n, row.most)
		}
	}
}
