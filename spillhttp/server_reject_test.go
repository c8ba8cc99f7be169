package spillhttp

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/attempts"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/ratelimit"
)

// TestRejections is the table of the wire: what each rejection looks like.
func TestRejections(t *testing.T) {
	storm := ingress.Config{
		Load: swamped.Load, Attempts: attempts.Config{MinRequests: -1}, Rand: func() float64 { return 0.25 },
		Trust: ingress.Trust{Boundary: ingress.Internal},
	}
	calm := storm
	calm.Attempts.Share = -1
	over := ingress.Config{Quota: none()}
	limited := ingress.Config{RateLimit: ratelimit.Config{Rate: 1.0 / 3600, BurstSeconds: 3600}, Rand: storm.Rand}
	for _, row := range []struct {
		name   string
		config ingress.Config
		grpc   bool
		status int
		want   string
	}{
		{"overloaded", calm, false, 503, "Content-Length: 22, Content-Type: text/plain; charset=utf-8, Retry-After: 1, Retry-After-Ms: 750, X-Envoy-Overloaded: true, X-Overload-Reason: utilization, X-Overload-Scope: task"},
		{"rate limit", limited, false, 503, "Content-Length: 19, Content-Type: text/plain; charset=utf-8, Retry-After: T, Retry-After-Ms: T, X-Envoy-Overloaded: true, X-Overload-Reason: overload, X-Overload-Scope: task"},
		{"don't retry", storm, false, 503, "Content-Length: 22, Content-Type: text/plain; charset=utf-8, X-Envoy-Overloaded: true, X-Overload-Reason: utilization, X-Overload-Scope: service, X-Should-Retry: false"},
		{
			"quota", over, false, 429,
			`Content-Length: 16, Content-Type: text/plain; charset=utf-8, Ratelimit: "quota";r=0;t=T, Retry-After: T, Retry-After-Ms: T, X-Envoy-Ratelimited: true, X-Overload-Reason: quota, X-Overload-Scope: customer`,
		},
		{"overloaded", calm, true, 200, "Content-Type: application/grpc, Grpc-Message: overloaded (utilization), Grpc-Retry-Pushback-Ms: 750, Grpc-Status: 14, X-Overload-Reason: utilization, X-Overload-Scope: task"},
		{"don't retry", storm, true, 200, "Content-Type: application/grpc, Grpc-Message: overloaded (utilization), Grpc-Retry-Pushback-Ms: -1, Grpc-Status: 14, X-Overload-Reason: utilization, X-Overload-Scope: service"},
		{"quota", over, true, 200, "Content-Type: application/grpc, Grpc-Message: over quota, Grpc-Retry-Pushback-Ms: T, Grpc-Status: 8, X-Overload-Reason: quota, X-Overload-Scope: customer"},
	} {
		t.Run(fmt.Sprintf("%s, grpc %v", row.name, row.grpc), func(t *testing.T) {
			h := mustHandler(t, bare, row.config, HandlerConfig{})
			var w *httptest.ResponseRecorder
			for range 3 { // the first may be let in
				w = httptest.NewRecorder()
				r := incoming(t, headerAttempt, "3")
				if row.grpc {
					r.ProtoMajor = 2
					r.Header.Set("Content-Type", "application/grpc+proto")
				}
				h.ServeHTTP(w, r)
			}
			if got := headerText(w.Header()); w.Code != row.status || !alike(got, row.want) || row.grpc != (w.Body.Len() == 0) {
				t.Errorf("%d %s, want %d %s", w.Code, got, row.status, row.want)
			}
			if status, ok := failureOf(w.Code, w.Header(), time.Now()); !ok || !status.Overload {
				t.Errorf("a Transport takes it for %+v", status)
			}
		})
	}
}

func headerText(h http.Header) string {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(h)) {
		lines = append(lines, key+": "+strings.Join(h[key], "; "))
	}
	return strings.Join(lines, ", ")
}

// alike reports whether got is want, in which each T is some number.
func alike(got, want string) bool {
	for i, part := range strings.SplitAfter(want, "T,") {
		if i > 0 {
			got = strings.TrimLeft(got, "0123456789")
			part = "," + part
		}
		part = strings.TrimSuffix(part, "T,")
		var ok bool
		if got, ok = strings.CutPrefix(got, part); !ok {
			return false
		}
	}
	return got == ""
}

// TestRejectedGRPC: a Transport knows the rejection of a call of gRPC, tries elsewhere at
// once, and hands the last one out as it is.
func TestRejectedGRPC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		s := open(t, "h2c", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			calls++
			_, _ = io.Copy(io.Discard, r.Body)
			Reject(w, r, ingress.Rejection{RetryAfter: 2 * time.Second, DontRetry: calls > 1})
		}), false)
		defer s.close()
		client := mustTransport(t, TransportConfig{Base: s.base, Egress: eager})
		r := newRequest(t, t.Context(), http.MethodPost, strings.NewReader("a call"))
		r.Header.Set("Content-Type", "application/grpc")
		start := time.Now()
		resp := must(client.RoundTrip(r))
		if got := readAll(t, resp); got != "" || resp.StatusCode != 200 || resp.Header.Get("Grpc-Status") != "14" {
			t.Errorf("%d %v %q", resp.StatusCode, resp.Header, got)
		}
		if took := time.Since(start); calls != 2 || took > 5*time.Millisecond {
			t.Errorf("%d calls in %v, want 2 at once, and none after \"don't retry\"", calls, took)
		}
	})
}

// TestBodiesNeverRead: a rejection waits for no large body.
func TestBodiesNeverRead(t *testing.T) {
	everyWay(t, func(t *testing.T, protocol string, early bool) {
		h := mustHandler(t, bare, swamped, HandlerConfig{})
		h.looks.Store(lookOn)
		s := open(t, protocol, h, early)
		defer s.close()
		post := func(body io.Reader, length int64) {
			t.Helper()
			r := newRequest(t, t.Context(), http.MethodPost, body)
			r.ContentLength = length
			resp := must(s.base.RoundTrip(r))
			if readAll(t, resp); resp.StatusCode != 503 {
				t.Errorf("%d", resp.StatusCode)
			}
			if large := length != 4; protocol == "HTTP1" && resp.Close != large {
				t.Errorf("%d bytes: the connection closes: %v", length, resp.Close)
			}
			synctest.Wait()
		}
		post(strings.NewReader("tiny"), 4)
		post(strings.NewReader("tiny"), 4)
		if n := s.network.opens.Load(); n != 1 {
			t.Errorf("%d connections, want 1", n)
		}
		start := time.Now()
		post(io.LimitReader(zeros{}, 1<<30), 1<<30)
		never, end := io.Pipe() // a body that does not come
		post(never, -1)
		end.Close()
		if took := time.Since(start); took > time.Second {
			t.Errorf("rejected after %v", took)
		}
		if n := s.network.opens.Load(); protocol == "h2c" && n != 1 {
			t.Errorf("%d connections, want the one, whose other streams are not to suffer", n)
		}
		nothingLeft(t, h)
	})
}

// TestRejectedBodiesHoldNothing: the bytes of bodies that were not read do not use up the flow
// control window of later requests on the same connection.
func TestRejectedBodiesHoldNothing(t *testing.T) {
	everyWay(t, func(t *testing.T, protocol string, early bool) {
		h := mustHandler(t, echo, busy, HandlerConfig{})
		h.looks.Store(lookOn)
		s := open(t, protocol, h, early)
		defer s.close()
		body, reason := strings.Repeat("x", 200_000), "rejected: overload\n"
		if protocol == "h2c" {
			reason = ""
		}
		post := func(class spillway.Criticality, want int) {
			t.Helper()
			r := newRequest(t, t.Context(), http.MethodPost, strings.NewReader(body))
			r.Header.Set(headerCriticality, class.String())
			resp, err := s.base.RoundTrip(r)
			if err != nil {
				// A client of HTTP/1 may see that the connection is closed before it sees why.
				if want == 200 || protocol != "HTTP1" {
					t.Error(err)
				}
				return
			}
			got := readAll(t, resp)
			if served := resp.StatusCode == want+len(got)%3 && got == body; want == 200 && !served || want == 503 && (resp.StatusCode != 503 || got != reason) {
				t.Errorf("%v: %d with %d bytes", class, resp.StatusCode, len(got))
			}
		}
		for range 30 {
			post(spillway.Sheddable, 503)
		}
		post(spillway.Critical, 200)
		synctest.Wait()
		nothingLeft(t, h)
	})
}

// TestReject: a handler can reject as a Handler does.
func TestReject(t *testing.T) {
	config := swamped
	config.Rand = func() float64 { return 0.5 }
	h := mustHandler(t, bare, config, HandlerConfig{})
	for _, contentType := range []string{"", "application/grpc"} {
		r := incoming(t)
		r.Header.Set("Content-Type", contentType)
		r.ProtoMajor = 2
		want, got := httptest.NewRecorder(), httptest.NewRecorder()
		h.ServeHTTP(want, r)
		Reject(got, r, ingress.Rejection{RetryAfter: time.Second})
		if got.Code != want.Code || headerText(got.Header()) != headerText(want.Header()) {
			t.Errorf("%q: %d %v, want %d %v", contentType, got.Code, got.Header(), want.Code, want.Header())
		}
	}
	for _, row := range []struct {
		major                   int
		contentType, want, body string
	}{ // a time that is unknown is not sent
		{1, "", `Content-Length: 16, Content-Type: text/plain; charset=utf-8, Ratelimit: "quota";r=0, X-Envoy-Ratelimited: true, X-Overload-Reason: quota, X-Overload-Scope: customer`, "rejected: quota\n"},
		{2, "", `Content-Length: 0, Ratelimit: "quota";r=0, X-Envoy-Ratelimited: true, X-Overload-Reason: quota, X-Overload-Scope: customer`, ""},
		{2, "application/grpc", "Content-Type: application/grpc, Grpc-Message: over quota, Grpc-Status: 8, X-Overload-Reason: quota, X-Overload-Scope: customer", ""},
	} {
		r := incoming(t)
		r.Header.Set("Content-Type", row.contentType)
		r.ProtoMajor = row.major
		got := httptest.NewRecorder()
		Reject(got, r, ingress.Rejection{Outcome: spillway.OutcomeOverQuota})
		if text := headerText(got.Header()); text != row.want || got.Body.String() != row.body {
			t.Errorf("HTTP/%d, %q: %v %q, want %s %q", row.major, row.contentType, text, got.Body, row.want, row.body)
		}
	}
}

// TestRejectedDate: over HTTP/2 an answer has no Date where that is optional, unless another handler
// has set it.
func TestRejectedDate(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const given = "Thu, 01 Jan 1970 00:00:00 GMT"
		now := func() string { return time.Now().UTC().Format(http.TimeFormat) }
		for _, row := range []struct {
			outcome spillway.Outcome
			given   string
			want    func() string
		}{
			{spillway.OutcomeOverloaded, "", func() string { return "" }},
			{spillway.OutcomeOverloaded, given, func() string { return given }},
			{spillway.OutcomeOverQuota, "", now},
		} {
			s := open(t, "h2c", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if row.given != "" {
					w.Header().Set("Date", row.given)
				}
				Reject(w, r, ingress.Rejection{Outcome: row.outcome})
			}), false)
			resp := must(s.base.RoundTrip(newRequest(t, t.Context(), http.MethodGet, nil)))
			if got, want := resp.Header.Get("Date"), row.want(); got != want || resp.Header.Get("Content-Length") != "0" {
				t.Errorf("%v: Date %q, Content-Length %q, want %q", row.outcome, got, resp.Header.Get("Content-Length"), want)
			}
			_ = resp.Body.Close()
			s.close()
		}
	})
}
