package spillhttp

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/hints"
	"github.com/seed90641741/spillway/ratelimit"
)

func TestAttemptAndTimeout(t *testing.T) {
	for _, row := range []struct {
		header  http.Header
		attempt int
		timeout time.Duration
	}{
		{http.Header{}, 0, 0},
		{http.Header{headerAttempt: {"1"}, headerDeadline: {"250"}}, 0, 250 * time.Millisecond},
		{http.Header{headerAttempt: {"3"}, headerDeadline: {"300", "200", "0"}}, 2, 200 * time.Millisecond},
		{http.Header{headerAttempt: {"2", "1", "-9", "x"}}, 1, 0},
		{http.Header{headerSDKRequest: {"attempt=4; max=5"}}, 3, 0},
		{http.Header{headerSDKRequest: {"ttl=20261120T080000Z;attempt=2", "max=9"}}, 1, 0},
		{http.Header{headerGRPCAttempts: {"2"}, headerAttempt: {"2"}}, 2, 0},
		{http.Header{headerAttempt: {"1000000000"}}, 1e9 - 1, 0},
		{http.Header{headerGRPCAttempts: {strings.Repeat("9", 400)}}, math.MaxInt32, 0},
		{http.Header{headerGRPCTimeout: {"2S"}, headerDeadline: {"9000"}}, 0, 2 * time.Second},
		{http.Header{headerGRPCTimeout: {"100m"}}, 0, 100 * time.Millisecond},
		{http.Header{headerGRPCTimeout: {"99999999H"}}, 0, hints.Max},
		{http.Header{headerGRPCTimeout: {"123456789m", "S", "", "1", "1x", "-1S"}}, 0, 0},
		{http.Header{headerDeadline: {"-5", "1e3", "1.5", strings.Repeat("9", 400)}}, 0, hints.Max},
	} {
		f := fieldsOf(&http.Request{Method: http.MethodPost, Header: row.header}, true)
		for i, key := range claimHeaders {
			if !slices.Equal(f[i], row.header[key]) {
				t.Errorf("%.80q: %s is %q", row.header, key, f[i])
			}
		}
		var said ingress.Claims
		if f.read(&said); said.Attempt != row.attempt || said.Timeout != row.timeout {
			t.Errorf("%.80q: attempt %d and timeout %v, want %d and %v", row.header, said.Attempt, said.Timeout, row.attempt, row.timeout)
		}
	}
}

// judged returns what a Handler makes of a request.
func judged(h *Handler, now time.Time, r *http.Request) (spillway.Call, ratelimit.Caller, bool) {
	var a arrival
	h.judge(now, r, &a)
	h.find(r, &a.Caller)
	return a.Call, a.Caller, a.Labelled
}

// rejectedEarly returns the decision of a Handler when only the headers of a request have arrived.
func rejectedEarly(h *Handler, now time.Time, r *http.Request) ingress.Rejection {
	var a arrival
	h.judge(now, r, &a)
	return h.early(r.Context(), now, &a)
}

// TestTrust: the same claims at an edge and inside.
func TestTrust(t *testing.T) {
	route := func(*http.Request) spillway.Call { return spillway.Call{Criticality: spillway.SheddablePlus} }
	named := func(*http.Request) string { return "batch" }
	inside := ingress.Trust{
		Boundary: ingress.Internal, DefaultMax: spillway.CriticalPlus,
		MaxByIdentity: map[string]spillway.Criticality{"batch": spillway.SheddablePlus},
	}
	for _, row := range []struct {
		name     string
		trust    ingress.Trust
		config   HandlerConfig
		claims   []string
		class    spillway.Criticality
		attempt  int16
		labelled bool
	}{
		{"edge, nothing said", ingress.Trust{}, HandlerConfig{}, nil, spillway.Critical, 0, false},
		{"edge, raised", ingress.Trust{}, HandlerConfig{}, []string{headerCriticality, "CRITICAL_PLUS"}, spillway.Critical, 0, false},
		{"edge, lowered", ingress.Trust{}, HandlerConfig{}, []string{headerCriticality, "SHEDDABLE"}, spillway.Sheddable, 0, true},
		{"edge, route", ingress.Trust{}, HandlerConfig{Classify: route}, []string{headerCriticality, "CRITICAL"}, spillway.SheddablePlus, 0, true},
		{"edge, attempts", ingress.Trust{}, HandlerConfig{}, []string{headerAttempt, "1000000000"}, spillway.Critical, 0, false},
		{"inside", inside, HandlerConfig{}, []string{headerCriticality, "CRITICAL_PLUS", headerAttempt, "3"}, spillway.CriticalPlus, 2, true},
		{"inside, nothing said", inside, HandlerConfig{}, nil, spillway.Critical, 0, false},
		{"inside, ordinary", inside, HandlerConfig{}, []string{headerCriticality, "CRITICAL"}, spillway.Critical, 0, true},
		{"inside, route", inside, HandlerConfig{Classify: route}, []string{headerCriticality, "CRITICAL"}, spillway.Critical, 0, true},
		{"inside, capped", inside, HandlerConfig{Identity: named}, []string{headerCriticality, "CRITICAL"}, spillway.SheddablePlus, 0, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := mustHandler(t, bare, ingress.Config{Trust: row.trust}, row.config)
			call, _, labelled := judged(h, time.Now(), incoming(t, row.claims...))
			if call.Criticality != row.class || call.Attempt != row.attempt || labelled != row.labelled {
				t.Errorf("%+v, labelled %v; want %v, attempt %d, labelled %v", call, labelled, row.class, row.attempt, row.labelled)
			}
		})
	}
}

// TestAttemptsOfCustomers: at an edge, attempts count against the customer that makes them.
func TestAttemptsOfCustomers(t *testing.T) {
	h := mustHandler(t, bare, ingress.Config{}, HandlerConfig{
		Classify: func(*http.Request) spillway.Call { return spillway.Call{Customer: "alice"} },
	})
	if call, _, _ := judged(h, time.Now(), incoming(t, headerAttempt, "3")); call.Attempt != 2 || call.Customer != "alice" {
		t.Errorf("%+v", call)
	}
}

func TestCaller(t *testing.T) {
	r := incoming(t)
	r.RemoteAddr = "[2001:db8::1]:443"
	r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{
		Subject: pkix.Name{CommonName: "cn"}, DNSNames: []string{"dns.example"},
		URIs: []*url.URL{{Scheme: "spiffe", Host: "example.org", Path: "/web"}},
	}}}}
	limited := mustHandler(t, bare, ingress.Config{RateLimit: ratelimit.Config{Rate: 1}}, HandlerConfig{})
	want := ratelimit.Caller{Addr: netip.MustParseAddr("2001:db8::1"), Identity: "uri:spiffe://example.org/web", Application: "client/1.0"}
	if _, got, _ := judged(limited, time.Now(), r); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, want := range []string{"dns:dns.example", "cn:cn", ""} {
		c := r.TLS.VerifiedChains[0][0]
		c.URIs = nil
		switch want {
		case "cn:cn":
			c.DNSNames = nil
		case "":
			r.TLS.VerifiedChains = nil // presented, but not verified
		}
		if got := new(Handler).identity(r); got != want {
			t.Errorf("identity %q, want %q", got, want)
		}
	}
}

// FuzzForgedHeaders: at an edge, whatever a request says, however long and often,
// gains it nothing; inside it stays within what the caller may.
func FuzzForgedHeaders(f *testing.F) {
	f.Add("CRITICAL_PLUS", "criticality=CRITICAL_PLUS", "1000000000", "attempt=99999999999999999999", "99999999H", "-1", uint8(2))
	f.Add("SHEDDABLE", "", "0", "attempt=", "0n", "18446744073709551616", uint8(1))
	f.Add("", strings.Repeat("criticality=SHEDDABLE,", 50_000), strings.Repeat("9", 1<<20), strings.Repeat("attempt=9;", 100_000), "1n", strings.Repeat("0", 1<<20)+"1", uint8(1))
	f.Add(strings.Repeat("CRITICAL_PLUS", 1<<16), "criticality", "-1000000000", ";;=;attempt", "\xff\x00", "\u0661", uint8(255))
	customer := HandlerConfig{Classify: func(*http.Request) spillway.Call { return spillway.Call{Customer: "mallory"} }}
	edge := mustHandler(f, bare, ingress.Config{}, HandlerConfig{})
	known := mustHandler(f, bare, ingress.Config{}, customer)
	inside := mustHandler(f, bare, ingress.Config{Trust: ingress.Trust{Boundary: ingress.Internal}}, HandlerConfig{})
	f.Fuzz(func(t *testing.T, class, baggage, attempt, sdk, timeout, ms string, times uint8) {
		r := incoming(t)
		for range max(1, min(int(times), 1<<20/(1+len(class+baggage+attempt+sdk+timeout+ms)))) {
			for key, value := range map[string]string{
				headerCriticality: class, headerBaggage: baggage, headerAttempt: attempt, headerGRPCAttempts: attempt,
				headerSDKRequest: sdk, headerGRPCTimeout: timeout, headerDeadline: ms,
			} {
				r.Header[key] = append(r.Header[key], value)
			}
		}
		now := time.Now()
		for key, value := range map[string]string{headerLevel: attempt, headerProgress: ms, headerTrace: sdk} {
			r.Header[key] = append(r.Header[key], value)
		}
		call, _, labelled := judged(edge, now, r)
		if call.Level != 0 || call.Progress != 0 {
			t.Errorf("edge: level %d, progress %d", call.Level, call.Progress)
		}
		if call.Criticality > spillway.Critical || !call.Criticality.Valid() || call.Attempt != 0 || labelled != (call.Criticality < spillway.Critical) {
			t.Errorf("edge: %+v, labelled %v", call, labelled)
		}
		if d := call.Deadline; !d.IsZero() && (!d.After(now) || d.After(now.Add(time.Hour))) {
			t.Errorf("edge: deadline in %v", d.Sub(now))
		}
		if call, _, _ := judged(known, now, r); call.Attempt < 0 || call.Customer != "mallory" || call.Criticality > spillway.Critical {
			t.Errorf("edge, a customer: %+v", call)
		}
		if call, _, _ := judged(inside, now, r); call.Level > spillway.Levels || call.Criticality > spillway.Critical || call.Attempt < 0 {
			t.Errorf("inside: %+v", call)
		}
		for _, h := range []*Handler{edge, known, inside} {
			rejectedEarly(h, now, r)
			h.ServeHTTP(nowhere{http.Header{}}, r)
			nothingLeft(t, h)
		}
	})
}
