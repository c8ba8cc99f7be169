package spillaws

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdkretry "github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/hints"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// responded is an answer of a service as its client returns it, with headers
// given as pairs.
func responded(status int, err error, headers ...string) error {
	h := make(http.Header)
	for i := 0; i+1 < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return &smithy.OperationError{Err: &awshttp.ResponseError{ResponseError: &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status, Header: h}}, Err: err,
	}}}
}

func coded(code string) error { return &smithy.GenericAPIError{Code: code} }

// retryable is how the SDK marks what it takes for clock skew.
type retryable bool

func (r retryable) Error() string        { return fmt.Sprint("retryable: ", bool(r)) }
func (r retryable) RetryableError() bool { return bool(r) }

var errorsToClassify = []struct {
	name string
	err  error
	want fault.Failure
	ours bool // the SDK would decide otherwise
}{
	{name: "nothing known", err: errors.New("?")},
	{name: "500", err: responded(500, coded("X")), want: fault.Failure{Safety: fault.RetrySafe, Party: fault.Server}},
	{name: "503", err: responded(503, nil), want: fault.Failure{Safety: fault.RetrySafe, Party: fault.Server}},
	{name: "504", err: responded(504, nil), want: fault.Failure{Safety: fault.RetrySafe, Party: fault.Server}},
	{name: "501", err: responded(501, nil), want: fault.Failure{Party: fault.Server}},
	{name: "404", err: responded(404, coded("NotFound")), want: fault.Failure{Party: fault.Client}},
	{name: "429", err: responded(429, nil), want: fault.Failure{Safety: fault.RetrySafe, Party: fault.Client, Overload: true}, ours: true},
	{name: "throttled by code", err: responded(400, coded("ThrottlingException")), want: fault.Failure{Safety: fault.RetrySafe, Party: fault.Client, Overload: true}},
	{name: "slow down", err: responded(503, coded("SlowDown")), want: fault.Failure{Safety: fault.RetrySafe, Party: fault.Server, Overload: true}},
	{name: "modelled throttling", err: responded(400, &smithy.GenericAPIError{Code: "ProvisionedThroughputExceededException", Fault: smithy.FaultClient}), want: fault.Failure{Safety: fault.RetrySafe, Party: fault.Client, Overload: true}},
	{name: "modelled server error", err: responded(500, &smithy.GenericAPIError{Code: "InternalServerError", Fault: smithy.FaultServer}), want: fault.Failure{Safety: fault.RetrySafe, Party: fault.Server}},
	{name: "model before status", err: responded(400, &smithy.GenericAPIError{Code: "InternalServerError", Fault: smithy.FaultServer}), want: fault.Failure{Party: fault.Server}},
	{name: "timeout by code", err: responded(400, coded("RequestTimeout")), want: fault.Failure{Safety: fault.RetrySafe, Party: fault.Client}},
	{name: "clock skew", err: fmt.Errorf("skewed: %w", errors.Join(retryable(true), responded(403, coded("AccessDeniedException")))), want: fault.Failure{Safety: fault.RetrySafe, Party: fault.Client}},
	{name: "marked as final", err: responded(503, retryable(false)), want: fault.Failure{Safety: fault.RetryUnsafe, Party: fault.Server}},
	{name: "hint", err: responded(503, nil, "X-Amz-Retry-After", "1500"), want: fault.Failure{Safety: fault.RetrySafe, Party: fault.Server, RetryAfter: 1500 * time.Millisecond, HasRetryAfter: true}},
	{name: "standard hint", err: responded(503, nil, "Retry-After", "1"), want: fault.Failure{Safety: fault.RetrySafe, Party: fault.Server}},
	{name: "don't retry", err: responded(503, nil, "X-Should-Retry", "false"), want: fault.Failure{Safety: fault.RetryUnsafe, Party: fault.Server, DontRetry: true}, ours: true},
	{name: "rejected connection", err: &smithyhttp.RequestSendError{Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}, want: fault.Failure{Safety: fault.RetrySafe, Unprocessed: true, Unanswered: true}},
	{name: "broken connection", err: &smithyhttp.RequestSendError{Err: &url.Error{Op: "Post", Err: io.EOF}}, want: fault.Failure{Safety: fault.RetrySafe, Unanswered: true}},
	{name: "answer broke off", err: responded(200, &net.OpError{Op: "read", Err: syscall.ECONNRESET}), want: fault.Failure{Safety: fault.RetrySafe, Unanswered: true}},
	{name: "timeout", err: &smithyhttp.RequestSendError{Err: &url.Error{Err: context.DeadlineExceeded}}, want: fault.Failure{Safety: fault.RetrySafe, Timeout: true, Unanswered: true}},
	{name: "no such host", err: &net.DNSError{IsNotFound: true}, want: fault.Failure{Safety: fault.RetryUnsafe, Unsent: true}},
	{name: "no descriptor", err: &smithyhttp.RequestSendError{Err: errNoDescriptor}, want: fault.Failure{Safety: fault.RetrySafe, Unsent: true}},
	{name: "caller left", err: &aws.RequestCanceledError{Err: context.Canceled}, want: fault.Failure{Safety: fault.RetryUnsafe, Canceled: true}},
	{name: "deadline of the caller", err: &smithy.CanceledError{Err: context.DeadlineExceeded}, want: fault.Failure{Safety: fault.RetryUnsafe, Canceled: true, Timeout: true, Unanswered: true}},
	{name: "rejected locally", err: &smithyhttp.RequestSendError{Err: &spillway.RejectedError{}}, want: fault.Failure{Safety: fault.RetryUnsafe, Unsent: true}, ours: true},
}

// errNoDescriptor is the error of a process that has too many open files.
var errNoDescriptor = &net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)}

func TestClassify(t *testing.T) {
	r := must(New(Config{}))
	sdk := sdkretry.NewStandard()
	for _, test := range errorsToClassify {
		t.Run(test.name, func(t *testing.T) {
			if got := Classify(test.err); got != test.want {
				t.Errorf("%+v\nwant %+v", got, test.want)
			}
			ours := r.IsErrorRetryable(test.err)
			if ours != (test.want.Safety == fault.RetrySafe) {
				t.Errorf("retryable: %v", ours)
			}
			if (ours != sdk.IsErrorRetryable(test.err)) != test.ours {
				t.Errorf("retryable: %v; differs from the SDK: %v", ours, !test.ours)
			}
		})
	}
}

// TestClassifyLikeTheSDK compares all codes and statuses with the SDK's answers.
func TestClassifyLikeTheSDK(t *testing.T) {
	sdk, r := sdkretry.NewStandard(), must(New(Config{}))
	throttles := sdkretry.IsErrorThrottles(sdkretry.DefaultThrottles)
	codes := []string{"", "X", "ValidationException", "RequestTimeout", "RequestTimeoutException"}
	for code := range sdkretry.DefaultThrottleErrorCodes {
		codes = append(codes, code)
	}
	for _, code := range codes {
		for status := 200; status < 600; status++ {
			if status == http.StatusTooManyRequests {
				continue
			}
			err := responded(status, coded(code))
			if got, want := r.IsErrorRetryable(err), sdk.IsErrorRetryable(err); got != want {
				t.Errorf("%d %s: retryable: %v, want %v", status, code, got, want)
			}
			if got, want := Classify(err).Overload, throttles.IsErrorThrottle(err).Bool(); got != want {
				t.Errorf("%d %s: throttled: %v, want %v", status, code, got, want)
			}
		}
	}
}

func TestHint(t *testing.T) {
	const day = "Fri, 20 Nov 2026 08:00:00 GMT"
	for _, test := range []struct {
		headers  []string
		standard bool
		want     time.Duration
		ok       bool
	}{
		{nil, true, 0, false},
		{[]string{"X-Amz-Retry-After", "1500"}, false, 1500 * time.Millisecond, true},
		{[]string{"X-Amz-Retry-After", " 0 "}, false, 0, true},
		{[]string{"X-Amz-Retry-After", "-1"}, false, 0, false},
		{[]string{"X-Amz-Retry-After", "1.5"}, false, 0, false},
		{[]string{"X-Amz-Retry-After", "9223372036854775807"}, false, hints.Max, true},
		{[]string{"X-Amz-Retry-After", "9223372036854775808"}, false, 0, false},
		{[]string{"X-Amz-Retry-After", "soon", "Retry-After", "2"}, true, 2 * time.Second, true},
		{[]string{"X-Amz-Retry-After", "1", "Retry-After", "2"}, true, time.Millisecond, true},
		{[]string{"Retry-After", "2"}, false, 0, false},
		{[]string{"Retry-After", "Fri, 20 Nov 2026 08:00:30 GMT", "Date", day}, true, 30 * time.Second, true},
		{[]string{"Retry-After", "Fri, 20 Nov 2026 07:00:00 GMT", "Date", day}, true, 0, true},
		{[]string{"Retry-After", "Fri, 20 Nov 2099 07:00:00 GMT", "Date", day}, true, hints.Max, true},
		{[]string{"Retry-After", "Thu, 01 Jan 1970 00:00:00 GMT"}, true, 0, true},
		{[]string{"Retry-After", "tomorrow"}, true, 0, false},
	} {
		h := make(http.Header)
		for i := 0; i < len(test.headers); i += 2 {
			h.Set(test.headers[i], test.headers[i+1])
		}
		if got, ok := hintOf(h, test.standard); got != test.want || ok != test.ok {
			t.Errorf("%q: %v, %v; want %v, %v", test.headers, got, ok, test.want, test.ok)
		}
	}
}

// TestStandardHintCounts is about services that are only compatible with AWS.
func TestStandardHintCounts(t *testing.T) {
	r := must(New(Config{RetryAfter: true}))
	if f := r.failure(responded(503, nil, "Retry-After", "2")); f.RetryAfter != 2*time.Second || !f.HasRetryAfter {
		t.Errorf("%+v", f)
	}
}

func FuzzHint(f *testing.F) {
	f.Add("1500", "1", "")
	f.Add("-1", "Fri, 20 Nov 2026 08:00:30 GMT", "Fri, 20 Nov 2026 08:00:00 GMT")
	f.Add("99999999999999999999", "-0", "x")
	f.Fuzz(func(t *testing.T, ms, after, date string) {
		h := http.Header{"X-Amz-Retry-After": {ms}, "Retry-After": {after}, "Date": {date}}
		for _, standard := range []bool{false, true} {
			d, ok := hintOf(h, standard)
			if d < 0 || d > hints.Max || !ok && d != 0 {
				t.Errorf("%q: %v, %v", h, d, ok)
			}
		}
	})
}
