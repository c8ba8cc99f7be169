package spillgrpc

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/retry"
)

const imported = `{
	"methodConfig": [
		{"name": [{"service": "grpc.testing.TestService", "method": "UnaryCall"}],
		 "retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE", 10]}},
		{"name": [{"service": "grpc.testing.TestService"}],
		 "retryPolicy": {"maxAttempts": 9, "initialBackoff": "0.001s", "maxBackoff": "1s", "backoffMultiplier": 1.5, "retryableStatusCodes": ["INTERNAL"]}},
		{"name": [{"service": "other"}], "hedgingPolicy": {"maxAttempts": 2}},
		{"name": [{}], "timeout": "1s"}
	],
	"retryThrottling": {"maxTokens": 10, "tokenRatio": 0.5}
}`

func TestImport(t *testing.T) {
	m := must(ImportServiceConfig(imported))
	for _, row := range []struct {
		method    string
		code      codes.Code
		attempts  int
		retryable fault.Safety
	}{
		{methodUnary, codes.Unavailable, 4, fault.RetrySafe},
		{methodUnary, codes.Aborted, 4, fault.RetrySafe},
		{methodUnary, codes.Internal, 4, fault.RetryUnsafe},
		{methodDuplex, codes.Internal, 5, fault.RetrySafe},
		{methodDuplex, codes.Unavailable, 5, fault.RetryUnsafe},
		{"/other/Method", codes.Unavailable, 1, fault.RetryUnsafe},
		{"/another/Method", codes.Unavailable, 1, fault.RetryUnsafe},
		{"malformed", codes.Unavailable, 1, fault.RetryUnsafe},
	} {
		p := m.policy(row.method)
		if got := p.safe(row.code); got != row.retryable {
			t.Errorf("%s, %v: %v, want %v", row.method, row.code, got, row.retryable)
		}
		n := 1
		s := must(ImportServiceConfig(imported)).strategy // a budget of its own
		token := s.Begin(spillway.Call{Key: row.method})
		for ; ; n++ {
			var err error
			if token, err = s.Refresh(time.Now(), token, fault.Failure{Safety: fault.RetrySafe}); err != nil {
				break
			}
			s.throttling.Deposit("", 1)
			s.throttling.Deposit("", 1)
		}
		if n != row.attempts {
			t.Errorf("%s: %d attempts, want %d", row.method, n, row.attempts)
		}
	}
	report := strings.Join(m.NotCarriedOver, "\n")
	for _, want := range []string{
		"/grpc.testing.TestService/UnaryCall: the wait before a retry is uniform",
		"/grpc.testing.TestService/: maxAttempts: 9 is taken as 5",
		"/grpc.testing.TestService/: backoffMultiplier: 1.5 is taken as 2",
		"/other/: hedgingPolicy",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("not reported: %s\n%s", want, report)
		}
	}
	if strings.Contains(report, "retryThrottling") {
		t.Errorf("reported although it was carried over:\n%s", report)
	}
	report = strings.Join(must(ImportServiceConfig(retryFive)).NotCarriedOver, "\n")
	if want := "all methods: backoffMultiplier: 1 is taken as 2"; !strings.Contains(report, want) {
		t.Errorf("not reported: %s\n%s", want, report)
	}
	if report := must(ImportServiceConfig(`{}`)).NotCarriedOver; len(report) != 1 || !strings.Contains(report[0], "retryThrottling: there is none") {
		t.Errorf("%q", report)
	}
}

func TestImportErrors(t *testing.T) {
	policy := func(fields string) string { return `{"methodConfig":[{"name":[{}],"retryPolicy":{` + fields + `}}]}` }
	for _, row := range []struct{ text, want string }{
		{`{`, "unexpected end"},
		{`{"retryThrottling":{"maxTokens":0,"tokenRatio":1}}`, "retryThrottling: budget: maxTokens is 0, must be above 0 and at most 1000"},
		{`{"retryThrottling":{"maxTokens":10}}`, "tokenRatio is 0, must be at least 0.001"},
		{`{"methodConfig":[{"name":[{"method":"m"}]}]}`, `methodConfig[0]: name has the method "m" without a service`},
		{`{"methodConfig":[{"name":[{}]},{"name":[{}]}]}`, `methodConfig[1]: name "" was there before`},
		{policy(``), "methodConfig[0]: retryPolicy: maxAttempts is 0, must be at least 2"},
		{policy(`"maxAttempts":1`), "maxAttempts is 1, must be at least 2"},
		{policy(`"maxAttempts":2,"initialBackoff":"0s"`), "initialBackoff is 0s, must be above 0"},
		{policy(`"maxAttempts":2,"initialBackoff":"soon"`), `"soon" is no duration such as "1.5s"`},
		{policy(`"maxAttempts":2,"initialBackoff":"1s","maxBackoff":"-1s"`), "maxBackoff is -1s, must be above 0"},
		{policy(`"maxAttempts":2,"initialBackoff":"1s","maxBackoff":"1s"`), "backoffMultiplier is 0, must be above 0"},
		{policy(`"maxAttempts":2,"initialBackoff":"1s","maxBackoff":"1s","backoffMultiplier":2`), "retryableStatusCodes is empty"},
		{policy(`"maxAttempts":2,"retryableStatusCodes":["NO_SUCH"]`), "NO_SUCH"},
	} {
		if _, err := ImportServiceConfig(row.text); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", row.text, err, row.want)
		}
	}
}

// TestImportedThrottling plays the throttling of gRFC A6: from 10 tokens, each
// failure takes one and each success brings a half, and more than 5 it takes for a
// retry. The failure of a last attempt counts, too.
func TestImportedThrottling(t *testing.T) {
	m := must(ImportServiceConfig(imported))
	failed := fault.Failure{Safety: fault.RetrySafe, Overload: true}
	tokens := func(want float64) {
		t.Helper()
		if got := m.strategy.throttling.Tokens(); got != want {
			t.Errorf("%v tokens, want %v", got, want)
		}
	}
	token := m.strategy.Begin(spillway.Call{Key: methodUnary})
	var err error
	for _, left := range []float64{9, 8, 7} {
		if token, err = m.strategy.Refresh(time.Now(), token, failed); err != nil {
			t.Fatal(err)
		}
		tokens(left)
	}
	if _, err = m.strategy.Refresh(time.Now(), token, failed); err == nil {
		t.Error("a fifth attempt")
	}
	tokens(6) // it was the last one
	token = m.strategy.Begin(spillway.Call{Key: methodUnary})
	if _, err = m.strategy.Refresh(time.Now(), token, failed); err == nil || !strings.Contains(err.Error(), "retry budget") {
		t.Errorf("%v, want a rejection by the budget", err)
	}
	tokens(5)
	token = m.strategy.Begin(spillway.Call{Key: methodUnary})
	if _, err = m.strategy.Refresh(time.Now(), token, fault.Failure{DontRetry: true}); err == nil {
		t.Error("a retry against the will of the backend")
	}
	tokens(4)
	token = m.strategy.Begin(spillway.Call{Key: methodUnary})
	if _, err = m.strategy.Refresh(time.Now(), token, fault.Failure{Safety: fault.RetryUnsafe}); err == nil {
		t.Error("a retry of a code that is not in the list")
	}
	tokens(4) // which is no failure
	if err := m.strategy.Succeed(m.strategy.Begin(spillway.Call{Key: methodUnary})); err != nil {
		t.Error(err)
	}
	tokens(4.5)
	if err := m.strategy.Release(m.strategy.Begin(spillway.Call{Key: methodDuplex}), fault.Failure{}); err != nil {
		t.Error(err)
	}
	tokens(4.5)
	if err := m.strategy.Succeed(retry.Token{}); err == nil {
		t.Error("nobody's token was taken")
	}
}

// TestImportedClient expects the codes of a service config to decide, and the class
// of the method not to.
func TestImportedClient(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var calls atomic.Int32
		cc := open(t, &service{unary: func(context.Context) error {
			if calls.Add(1)%3 != 0 {
				return status.Error(codes.Aborted, "conflict")
			}
			return nil
		}}).dial(mustClient(t, ClientConfig{
			Imported: must(ImportServiceConfig(imported)), Egress: egress.Config{ThrottleMode: spillway.ModeOff},
			Classify: func(context.Context, string) spillway.Call { return spillway.Call{Key: "mine"} },
		}).DialOptions()...)
		if err := call(t.Context(), cc); err != nil || calls.Load() != 3 {
			t.Errorf("%v after %d attempts, want success after 3", err, calls.Load())
		}
	})
}

// bounded is a strategy with a bound on all retries, as that of an xDS cluster.
type bounded struct {
	retry.Strategy

	left int // failures that may be asked about
}

func (b *bounded) Refresh(now time.Time, t retry.Token, f fault.Failure) (retry.Token, error) {
	if b.left--; b.left < 0 {
		_ = b.Release(t, f)
		return retry.Token{}, &retry.NotRetriedError{Reason: retry.ReasonBudget}
	}
	return b.Strategy.Refresh(now, t, f)
}

// Imported retries and a bound around them, as that of an xDS cluster, work together: the tighter one counts.
func TestImportedWithinABound(t *testing.T) {
	for bound, want := range map[int]int32{9: 4, 1: 2} { // four attempts by the service config
		inBubble(t, func(t *testing.T) {
			var calls atomic.Int32
			m := must(ImportServiceConfig(imported))
			cc := open(t, &service{unary: func(context.Context) error {
				calls.Add(1)
				return status.Error(codes.Aborted, "conflict")
			}}).dial(mustClient(t, ClientConfig{
				Imported: m, Egress: egress.Config{ThrottleMode: spillway.ModeOff, Retry: &bounded{m.Strategy(), bound}},
			}).DialOptions()...)
			if err := call(t.Context(), cc); err == nil || calls.Load() != want {
				t.Errorf("%v after %d attempts, want a failure after %d", err, calls.Load(), want)
			}
		})
	}
}

// FuzzImport expects every text to be a service config or an error, and each method
// to have a policy.
func FuzzImport(f *testing.F) {
	f.Add(imported, methodUnary)
	f.Add(`{"methodConfig":[null]}`, "")
	f.Fuzz(func(t *testing.T, text, method string) {
		if m, err := ImportServiceConfig(text); err == nil && m.policy(method) == nil {
			t.Errorf("%q: no policy for %q", text, method)
		}
	})
}
