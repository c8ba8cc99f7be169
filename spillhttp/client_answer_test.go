package spillhttp

import (
	"net/http"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
)

// TestAnswers is the table of the wire: what an answer means, and whether it may
// be retried if the request is idempotent and if it is not.
func TestAnswers(t *testing.T) {
	type f = fault.Failure
	type h = map[string]string
	const (
		never      = iota // neither
		idempotent        // only if idempotent
		always            // both
		success           // not a failure at all
	)
	for _, row := range []struct {
		status int
		header h
		want   f
		retry  int
	}{
		// What the status says alone.
		{200, nil, f{}, success},
		{204, nil, f{}, success},
		{301, nil, f{}, success},
		{400, nil, f{}, success},
		{404, nil, f{}, success},
		{409, nil, f{}, success},
		{408, nil, f{}, idempotent},
		{425, nil, f{Unprocessed: true, Party: fault.Client}, always},
		{429, nil, f{Overload: true, Party: fault.Client, Scope: fault.ScopeCustomer}, never},
		{500, nil, f{Party: fault.Server}, idempotent},
		{501, nil, f{Party: fault.Server, Safety: fault.RetryUnsafe}, never},
		{502, nil, f{Party: fault.Server}, idempotent},
		{503, nil, f{Party: fault.Server, Overload: true}, idempotent},
		{504, nil, f{Party: fault.Server, Timeout: true}, idempotent},
		{505, nil, f{Party: fault.Server, Safety: fault.RetryUnsafe}, never},
		{507, nil, f{Party: fault.Server, Safety: fault.RetryUnsafe}, never},
		{511, nil, f{Party: fault.Server, Safety: fault.RetryUnsafe}, never},
		{520, nil, f{Party: fault.Server}, idempotent},
		{529, nil, f{Party: fault.Server, Overload: true}, idempotent},

		// Proof that nothing ran.
		{503, h{"x-envoy-overloaded": "true"}, f{Party: fault.Server, Overload: true, Unprocessed: true}, always},
		{503, h{"finagle-http-nack": "true"}, f{Party: fault.Server, Overload: true, Unprocessed: true, Safety: fault.RetrySafe}, always},

		// How far a rejection reaches. What is no scope is none.
		{503, h{"x-overload-scope": "task"}, f{Party: fault.Server, Overload: true, Unprocessed: true, Scope: fault.ScopeTask}, always},
		{503, h{"x-overload-scope": " Task "}, f{Party: fault.Server, Overload: true, Unprocessed: true, Scope: fault.ScopeTask}, always},
		{503, h{"x-overload-scope": "service"}, f{Party: fault.Server, Overload: true, DontRetry: true, Scope: fault.ScopeService}, never},
		{503, h{"x-overload-scope": "customer"}, f{Party: fault.Server, Overload: true, Scope: fault.ScopeCustomer}, idempotent},
		{503, h{"x-overload-scope": "task", "x-should-retry": "false"}, f{Party: fault.Server, Overload: true, Unprocessed: true, DontRetry: true, Scope: fault.ScopeTask}, never},
		{503, h{"x-overload-scope": "task, service"}, f{Party: fault.Server, Overload: true}, idempotent},
		{503, h{"x-overload-scope": "*"}, f{Party: fault.Server, Overload: true}, idempotent},
		{429, h{"x-overload-scope": "task"}, f{Overload: true, Party: fault.Client, Scope: fault.ScopeCustomer}, never},
		{200, h{"x-overload-scope": "task"}, f{}, success},

		// Don't retry, whatever else is said.
		{503, h{"x-should-retry": "false"}, f{Party: fault.Server, Overload: true, DontRetry: true}, never},
		{503, h{"x-should-retry": "false", "x-envoy-overloaded": "true"}, f{Party: fault.Server, Overload: true, Unprocessed: true, DontRetry: true}, never},
		{503, h{"finagle-http-nonretryable-nack": "true"}, f{Party: fault.Server, Overload: true, Unprocessed: true, DontRetry: true}, never},
		{503, h{"finagle-http-nonretryable-nack": "true", "finagle-http-nack": "true"}, f{Party: fault.Server, Overload: true, Unprocessed: true, Safety: fault.RetrySafe, DontRetry: true}, never},
		{429, h{"x-envoy-ratelimited": "true"}, f{Party: fault.Client, Overload: true, Scope: fault.ScopeCustomer, DontRetry: true}, never},
		{503, h{"x-envoy-ratelimited": "true"}, f{Party: fault.Server, Overload: true, Scope: fault.ScopeCustomer, DontRetry: true}, never},
		{429, h{"x-envoy-ratelimited": "true", "retry-after": "1", "x-should-retry": "false"}, f{Party: fault.Client, Overload: true, Scope: fault.ScopeCustomer, DontRetry: true, HasRetryAfter: true, RetryAfter: time.Second, Safety: fault.RetrySafe}, never},
		{500, h{"stripe-should-retry": "false"}, f{Party: fault.Server, DontRetry: true}, never},
		{500, h{"stripe-should-retry": "false", "x-should-retry": "true"}, f{Party: fault.Server, Safety: fault.RetrySafe, DontRetry: true}, never},
		{400, h{"x-should-retry": "false"}, f{}, success},

		// Do retry.
		{429, h{"x-envoy-ratelimited": "true", "retry-after": "1"}, f{Party: fault.Client, Overload: true, Scope: fault.ScopeCustomer, HasRetryAfter: true, RetryAfter: time.Second, Safety: fault.RetrySafe}, always},
		{503, h{"x-envoy-ratelimited": "true", "retry-after": "1"}, f{Party: fault.Server, Overload: true, Scope: fault.ScopeCustomer, HasRetryAfter: true, RetryAfter: time.Second, Safety: fault.RetrySafe}, always},
		{500, h{"x-should-retry": " True "}, f{Party: fault.Server, Safety: fault.RetrySafe}, always},
		{409, h{"stripe-should-retry": "true"}, f{Party: fault.Client, Safety: fault.RetrySafe}, always},
		{501, h{"x-should-retry": "true"}, f{Party: fault.Server, Safety: fault.RetrySafe}, always},
		{500, h{"x-should-retry": "maybe"}, f{Party: fault.Server}, idempotent},
		{404, h{"x-should-retry": "maybe"}, f{}, success},

		// Hints.
		{503, h{"retry-after": "2"}, f{Party: fault.Server, Overload: true, HasRetryAfter: true, RetryAfter: 2 * time.Second}, idempotent},
		{503, h{"retry-after": "0"}, f{Party: fault.Server, Overload: true, HasRetryAfter: true}, idempotent},
		{503, h{"retry-after": "soon"}, f{Party: fault.Server, Overload: true}, idempotent},
		{429, h{"retry-after": "2"}, f{Party: fault.Client, Overload: true, Scope: fault.ScopeCustomer, Safety: fault.RetrySafe, HasRetryAfter: true, RetryAfter: 2 * time.Second}, always},
		{429, h{"retry-after": "soon"}, f{Party: fault.Client, Overload: true, Scope: fault.ScopeCustomer}, never},
		{429, h{"retry-after-ms": "20", "retry-after": "9"}, f{Party: fault.Client, Overload: true, Scope: fault.ScopeCustomer, Safety: fault.RetrySafe, HasRetryAfter: true, RetryAfter: 20 * time.Millisecond}, always},
		{500, h{"retry-after": "3"}, f{Party: fault.Server, HasRetryAfter: true, RetryAfter: 3 * time.Second}, idempotent},

		// Rejections of gRPC.
		{200, h{"content-type": "application/grpc", "grpc-status": "14"}, f{Party: fault.Server, Overload: true}, idempotent},
		{200, h{"content-type": "application/grpc+proto", "grpc-status": "14", "x-envoy-overloaded": "true"}, f{Party: fault.Server, Overload: true, Unprocessed: true}, always},
		{200, h{"content-type": "application/grpc", "grpc-status": "14", "grpc-retry-pushback-ms": "20"}, f{Party: fault.Server, Overload: true, Safety: fault.RetrySafe, HasRetryAfter: true, RetryAfter: 20 * time.Millisecond}, always},
		{200, h{"content-type": "application/grpc", "grpc-status": "14", "grpc-retry-pushback-ms": "0"}, f{Party: fault.Server, Overload: true, Safety: fault.RetrySafe, HasRetryAfter: true}, always},
		{200, h{"content-type": "application/grpc", "grpc-status": "14", "grpc-retry-pushback-ms": "-1"}, f{Party: fault.Server, Overload: true, DontRetry: true}, never},
		{200, h{"content-type": "application/grpc", "grpc-status": "14", "grpc-retry-pushback-ms": "soon"}, f{Party: fault.Server, Overload: true, DontRetry: true}, never},
		{200, h{"content-type": "application/grpc", "grpc-status": "14", "retry-after": "9"}, f{Party: fault.Server, Overload: true}, idempotent},
		{200, h{"content-type": "application/grpc", "grpc-status": "8"}, f{Party: fault.Client, Overload: true, Scope: fault.ScopeCustomer}, never},
		{200, h{"content-type": "application/grpc", "grpc-status": "8", "grpc-retry-pushback-ms": "1000"}, f{Party: fault.Client, Overload: true, Scope: fault.ScopeCustomer, Safety: fault.RetrySafe, HasRetryAfter: true, RetryAfter: time.Second}, always},
		{200, h{"content-type": "application/grpc", "grpc-status": "8", "grpc-message": "grpc: received message larger than max (5 vs. 4)"}, f{}, success},
		{200, h{"content-type": "application/grpc", "grpc-status": "0"}, f{}, success},
		{200, h{"content-type": "application/grpc", "grpc-status": "5", "grpc-retry-pushback-ms": "20"}, f{}, success},
		{200, h{"content-type": "application/grpc"}, f{}, success},
		{200, h{"content-type": "application/json", "grpc-status": "14"}, f{}, success},
		{204, h{"content-type": "application/grpc", "grpc-status": "14"}, f{}, success},

		// None of it where nothing went wrong.
		{200, h{"retry-after": "9", "x-should-retry": "true", "x-envoy-overloaded": "true"}, f{}, success},
		{302, h{"retry-after": "9", "x-envoy-ratelimited": "true"}, f{}, success},
		{404, h{"retry-after": "9"}, f{}, success},
	} {
		header := make(http.Header)
		for key, value := range row.header {
			header.Set(key, value)
		}
		got, failed := failureOf(row.status, header, time.Now())
		if failed != (row.retry != success) || got != row.want {
			t.Errorf("%d %v: failed %v, %+v\nwant %v, %+v", row.status, row.header, failed, got, row.retry != success, row.want)
			continue
		}
		if !failed {
			continue
		}
		if got.Retryable(false) != (row.retry == always) || got.Retryable(true) != (row.retry != never) {
			t.Errorf("%d %v: retryable %v, and %v if idempotent", row.status, row.header, got.Retryable(false), got.Retryable(true))
		}
	}
}

func TestKindOf(t *testing.T) {
	for _, row := range []struct {
		method, header   string
		read, idempotent bool
	}{
		{"", "", true, true},
		{"GET", "", true, true}, {"HEAD", "", true, true}, {"OPTIONS", "", true, true}, {"TRACE", "", true, true},
		{"PUT", "", false, true}, {"DELETE", "", false, true},
		{"POST", "", false, false}, {"PATCH", "", false, false}, {"CONNECT", "", false, false}, {"get", "", false, false},
		{"POST", "Idempotency-Key", false, true}, {"PATCH", "X-Idempotency-Key", false, true},
	} {
		req := &http.Request{Method: row.method, Header: http.Header{}}
		if row.header != "" {
			req.Header.Set(row.header, "1")
		}
		kind, idempotent := kindOf(req)
		if (kind == spillway.KindRead) != row.read || idempotent != row.idempotent {
			t.Errorf("%s %s: %v, %v", row.method, row.header, kind, idempotent)
		}
	}
}
