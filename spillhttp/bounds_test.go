package spillhttp

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/ingress"
)

// 400 is the first status that can be a failure, and the first that CheckResponse reports.
func TestFirstStatusOfFailure(t *testing.T) {
	again := http.Header{headerShouldRetry: {"true"}}
	for status, want := range map[int]bool{399: false, 400: true} {
		if _, failed := failureOf(status, again, time.Unix(1e9, 0)); failed != want {
			t.Errorf("%d that asks for a retry is a failure: %t", status, failed)
		}
		if err := CheckResponse(&http.Response{StatusCode: status}); (err != nil) != want {
			t.Errorf("CheckResponse(%d) = %v", status, err)
		}
	}
}

// An answer that says that a call failed says "don't retry" too, if it was final below.
func TestDontRetryByStatus(t *testing.T) {
	for _, row := range []struct {
		status       int
		grpc, scope  string
		http, pushed bool
		keepsScope   bool
	}{
		{status: 500, scope: "task", http: true}, {status: 500, scope: "service", http: true, keepsScope: true},
		{status: 408, http: true}, {status: 425, http: true}, {status: 429, http: true},
		{status: 404, scope: "task", keepsScope: true}, {status: 200, scope: "task", keepsScope: true}, {status: 200, grpc: "0", scope: "task", keepsScope: true},
		{status: 200, grpc: "14", scope: "task", pushed: true}, {status: 200, grpc: "14", scope: "customer", pushed: true, keepsScope: true},
		{status: 404, grpc: "14"},
	} {
		h := http.Header{}
		if row.grpc != "" {
			h[headerGRPCStatus] = []string{row.grpc}
		}
		if row.scope != "" {
			h[headerScope] = []string{row.scope}
		}
		dontRetry(h, row.status)
		if has(h, headerShouldRetry) != row.http || has(h, headerGRPCPushback) != row.pushed || has(h, headerScope) != row.keepsScope {
			t.Errorf("%+v: %v", row, h)
		}
	}
}

// The status of an answer is the first that is no interim one.
func TestStatusOfAnswer(t *testing.T) {
	for _, row := range []struct {
		written []int
		want    int16
	}{{[]int{200}, 200}, {[]int{103, 500}, 500}, {[]int{100, 103}, 0}, {[]int{101}, 101}, {[]int{204, 500}, 204}} {
		r := &response{ResponseWriter: httptest.NewRecorder()}
		for _, code := range row.written {
			r.WriteHeader(code)
		}
		if r.code != row.want {
			t.Errorf("%v: %d, want %d", row.written, r.code, row.want)
		}
	}
}

func TestNamesObjectAtItsBounds(t *testing.T) {
	for segment, want := range map[string]bool{
		strings.Repeat("a", routeSegment): false, strings.Repeat("a", routeSegment+1): true,
		"v" + strings.Repeat("1", routeVersion-1): false, "v" + strings.Repeat("1", routeVersion): true,
		"1": true, "": false,
	} {
		if got := namesObject(segment); got != want {
			t.Errorf("%q names an object: %t", segment, got)
		}
	}
}

func TestContentTypeOfGRPC(t *testing.T) {
	for text, want := range map[string]bool{
		"application/grpc": true, "application/grpc+proto": true, "application/grpc;x=1": true,
		"application/grpc-web": false, "application/json": false, "": false,
	} {
		if got := isGRPC(text); got != want {
			t.Errorf("%q is of gRPC: %t", text, got)
		}
	}
}

// Hedging follows the configuration.
func TestHedgingIsUpdated(t *testing.T) {
	rt := mustTransport(t, TransportConfig{})
	for _, want := range []bool{true, false, true} {
		c := egress.Config{}
		if want {
			c.Hedge.Delay = time.Second
		}
		if err := rt.Update(c); err != nil || rt.hedging.Load() != want {
			t.Errorf("%+v: hedging is %v, %v", c.Hedge, rt.hedging.Load(), err)
		}
	}
}

// A body that net/http reads to its end is not left unread.
func TestUnreadBodyAtItsBound(t *testing.T) {
	for length, want := range map[int64]bool{-1: true, drainBytes: false, drainBytes + 1: true} {
		if unread(&http.Request{ProtoMajor: 1, ContentLength: length}) != want {
			t.Errorf("a body of %d bytes is left unread: %v", length, !want)
		}
	}
}

// Health checks of orchestrators are known by their paths inside, and at the edge by those that
// are configured.
func TestHealthPathsByBoundary(t *testing.T) {
	h := &Handler{config: HandlerConfig{HealthPaths: []string{"/own"}}}
	for _, path := range []string{"/healthz", "/livez", "/readyz", "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch", "/own", "/other"} {
		inside, edge := path != "/other", path == "/own"
		if got := h.isHealth([]byte(path), &ingress.Trust{Boundary: ingress.Internal}); got != inside {
			t.Errorf("%s inside: %v", path, got)
		}
		if got := h.isHealth([]byte(path), &ingress.Trust{Boundary: ingress.Edge}); got != edge {
			t.Errorf("%s at the edge: %v", path, got)
		}
	}
}
