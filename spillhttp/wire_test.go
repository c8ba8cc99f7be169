package spillhttp

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
)

func TestMilliseconds(t *testing.T) {
	const ms = time.Millisecond
	for _, row := range []struct {
		d    time.Duration
		want string
	}{
		{math.MinInt64, "1"}, {-ms, "1"}, {0, "1"}, {ms - 1, "1"}, {ms, "1"}, {2*ms - 1, "1"}, {9 * ms, "9"}, {10 * ms, "10"}, {45 * ms, "45"},
		{99 * ms, "99"}, {100 * ms, "100"}, {101 * ms, "101"}, {999 * ms, "999"}, {time.Second, "1000"}, {1009 * ms, "1000"},
		{1010 * ms, "1010"}, {29999 * ms, "29900"}, {30 * time.Second, "30000"}, {time.Hour, "3600000"},
		{999_999_999 * ms, "999000000"}, {1_000_000_000 * ms, "999000000"}, {math.MaxInt64, "999000000"},
	} {
		if got := milliseconds(row.d); got != row.want {
			t.Errorf("%v is %q, want %q", row.d, got, row.want)
		}
	}
	for d := ms; d < 999_000_000*ms; d += d/97 + ms {
		n, err := strconv.ParseInt(milliseconds(d), 10, 64)
		if exact := d.Milliseconds(); err != nil || n > exact || exact < 1000 && n != exact || n < exact-exact/100 {
			t.Fatalf("%v is %d (%v), want at most 1 %% below %d, and exact below 1000", d, n, err, exact)
		}
	}
}

func TestCriticalityOf(t *testing.T) {
	for _, row := range []struct {
		header string
		want   spillway.Criticality
		ok     bool
	}{
		{"", spillway.Critical, false},
		{"SHEDDABLE", spillway.Sheddable, true},
		{" critical_plus ", spillway.CriticalPlus, true},
		{"URGENT", spillway.Critical, false},
	} {
		x := exchange{own: ownOf(http.Header{headerCriticality: {row.header}})}
		if x.label(t.Context()); x.class != row.want || x.labelled != row.ok {
			t.Errorf("%q is %v, %v; want %v, %v", row.header, x.class, x.labelled, row.want, row.ok)
		}
	}
}

// A call without a label is sent without one: its request is not copied.
func TestUnlabelledRequestIsSentAsItIs(t *testing.T) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://backend.example/", nil)
	if err != nil {
		t.Fatal(err)
	}
	var got *http.Request
	base := baseFunc(func(req *http.Request) (*http.Response, error) {
		got = req
		return answer(req, 200, ""), nil
	})
	roundTrip(t, mustTransport(t, TransportConfig{Base: base}), req)
	if got != req || len(got.Header) != 0 {
		t.Errorf("the base got another request, with headers %v", got.Header)
	}
}

// TestHeadersSent looks at what the base gets, on the first and on the third
// attempt, 20 ms apart, of a call that has 5 s.
func TestHeadersSent(t *testing.T) {
	const (
		c, n, d = headerCriticality, headerAttempt, headerDeadline
		none    = ""
	)
	external := func(*http.Request) bool { return true }
	for _, row := range []struct {
		name     string
		label    spillway.Criticality
		deadline bool
		caller   map[string]string
		external func(*http.Request) bool
		first    map[string]string
		third    map[string]string
	}{
		{"ordinary", spillway.Critical, false, nil, nil,
			map[string]string{c: "CRITICAL", n: none, d: none}, map[string]string{c: "CRITICAL", n: "3", d: none}},
		{"labelled, with a deadline", spillway.SheddablePlus, true, nil, nil,
			map[string]string{c: "SHEDDABLE_PLUS", n: none, d: "5000"}, map[string]string{c: "SHEDDABLE_PLUS", n: "3", d: "4960"}},
		{"no such label", spillway.Criticality(9), false, nil, nil,
			map[string]string{c: none}, map[string]string{c: none}},
		{"the caller's label wins", spillway.Critical, false, map[string]string{c: "SHEDDABLE"}, nil,
			map[string]string{c: "SHEDDABLE"}, map[string]string{c: "SHEDDABLE"}},
		{"even one that we do not know", spillway.Critical, false, map[string]string{c: "tier-3"}, nil,
			map[string]string{c: "tier-3"}, map[string]string{c: "tier-3"}},
		{"the attempt is ours, as it goes from hop to hop", spillway.Critical, false, map[string]string{n: "7"}, nil,
			map[string]string{n: none}, map[string]string{n: "3"}},
		{"so is the deadline, if there is one", spillway.Critical, true, map[string]string{d: "60000"}, nil,
			map[string]string{d: "5000"}, map[string]string{d: "4960"}},
		{"else the caller's stands", spillway.Critical, false, map[string]string{d: "60000"}, nil,
			map[string]string{d: "60000"}, map[string]string{d: "60000"}},
		{"nothing for others", spillway.Sheddable, true, nil, external,
			map[string]string{c: none, n: none, d: none}, map[string]string{c: none, n: none, d: none}},
		{"not even from the caller", spillway.Sheddable, true, map[string]string{c: "CRITICAL_PLUS", n: "7", d: "60000"}, external,
			map[string]string{c: none, n: none, d: none}, map[string]string{c: none, n: none, d: none}},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var got []http.Header
				base := baseFunc(func(req *http.Request) (*http.Response, error) {
					got = append(got, req.Header)
					time.Sleep(20 * time.Millisecond)
					return answer(req, 503, "busy"), nil
				})
				rt := mustTransport(t, TransportConfig{Base: base, External: row.external, Egress: eager})
				ctx := spillway.WithCriticality(t.Context(), row.label)
				if row.deadline {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, 5*time.Second)
					defer cancel()
				}
				req := newRequest(t, ctx, http.MethodGet, nil)
				req.Header.Set("Accept", "text/plain")
				for key, value := range row.caller {
					req.Header.Set(key, value)
				}
				before := req.Header.Clone()
				roundTrip(t, rt, req)
				if len(got) != 3 {
					t.Fatalf("%d attempts, want 3", len(got))
				}
				for key, want := range row.first {
					if got[0].Get(key) != want {
						t.Errorf("first attempt: %s is %q, want %q", key, got[0].Get(key), want)
					}
				}
				for key, want := range row.third {
					if got[2].Get(key) != want {
						t.Errorf("third attempt: %s is %q, want %q", key, got[2].Get(key), want)
					}
				}
				if got[0].Get("Accept") != "text/plain" || got[2].Get("Accept") != "text/plain" {
					t.Error("the caller's other headers are lost")
				}
				sameHeader(t, req.Header, before)
			})
		})
	}
}

// TestNothingToSay shows that a request which is right as it is goes out itself.
func TestNothingToSay(t *testing.T) {
	var sent *http.Request
	base := baseFunc(func(req *http.Request) (*http.Response, error) {
		sent = req
		return answer(req, 200, ""), nil
	})
	for _, internal := range []bool{true, false} {
		rt := mustTransport(t, TransportConfig{Base: base, External: func(*http.Request) bool { return !internal }})
		req := newRequest(t, t.Context(), http.MethodGet, nil)
		if internal {
			req.Header.Set(headerCriticality, "CRITICAL")
			req.Header.Set(headerBaggage, "a=1,criticality=CRITICAL")
		}
		roundTrip(t, rt, req)
		if sent != req {
			t.Errorf("internal %v: the request was copied for nothing", internal)
		}
	}
}

// TestPoliciesSeeTheLabel: who labels by header is judged by it here, too.
func TestPoliciesSeeTheLabel(t *testing.T) {
	var seen []spillway.Criticality
	config := egress.Config{Observer: spillway.ObserverFunc(func(e spillway.Event) { seen = append(seen, e.Call.Criticality) })}
	base := baseFunc(func(req *http.Request) (*http.Response, error) { return answer(req, 200, ""), nil })
	rt := mustTransport(t, TransportConfig{Base: base, Egress: config})
	req := newRequest(t, t.Context(), http.MethodGet, nil)
	req.Header.Set(headerCriticality, "sheddable")
	roundTrip(t, rt, req)
	if len(seen) == 0 {
		t.Fatal("no events")
	}
	for _, c := range seen {
		if c != spillway.Sheddable {
			t.Errorf("a policy saw %v, want %v", c, spillway.Sheddable)
		}
	}
}

func sameHeader(t *testing.T, got, want http.Header) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("the caller's header became %v, was %v", got, want)
	}
	for key, values := range want {
		if len(got[key]) != len(values) || got.Get(key) != values[0] {
			t.Errorf("the caller's header became %v, was %v", got, want)
		}
	}
}
