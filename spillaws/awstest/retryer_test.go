package awstest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdkretry "github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/spillaws"
)

// A script is a service that gives one answer after the other, and fails once it
// is at its end.
type script struct {
	steps []func(*http.Request) (*http.Response, error)
	n     int
}

func (s *script) Do(req *http.Request) (*http.Response, error) {
	if s.n == len(s.steps) {
		return nil, errors.New("script: an attempt too many")
	}
	s.n++
	return s.steps[s.n-1](req)
}

func play(steps ...func(*http.Request) (*http.Response, error)) *script { return &script{steps: steps} }

// ok, busy and broken are steps of scripts.
func ok(req *http.Request) (*http.Response, error) { return reply(req, http.StatusOK, "{}"), nil }

func busy(req *http.Request) (*http.Response, error) {
	return reply(req, http.StatusInternalServerError, `{"__type":"InternalServerError"}`), nil
}

func failing(err error) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

// A spy is a strategy that records its calls.
type spy struct {
	retry.Strategy

	log []string
	key string // of the last call
}

// spying returns a spy on the standard strategy, with the longest delays.
func spying(b retry.Budget) *spy {
	return &spy{Strategy: must(retry.NewAWSStandard(retry.AWSStandardConfig{Budget: b, Rand: func() float64 { return 1 }}))}
}

func (s *spy) Begin(call spillway.Call) retry.Token {
	s.log, s.key = append(s.log, "begin"), call.Key
	return s.Strategy.Begin(call)
}

func (s *spy) Refresh(now time.Time, t retry.Token, f fault.Failure) (retry.Token, error) {
	s.log = append(s.log, "refresh")
	return s.Strategy.Refresh(now, t, f)
}

func (s *spy) Succeed(t retry.Token) error {
	s.log = append(s.log, "succeed")
	return s.Strategy.Succeed(t)
}

func (s *spy) Release(t retry.Token, f fault.Failure) error {
	s.log = append(s.log, map[bool]string{false: "release", true: "release unsent"}[f.Unsent])
	return s.Strategy.Release(t, f)
}

func (s *spy) check(t *testing.T, want ...string) {
	t.Helper()
	if !reflect.DeepEqual(s.log, want) {
		t.Errorf("the strategy was told %q, want %q", s.log, want)
	}
}

// inBubbles runs f in a bubble for each of the SDK's behaviours.
func inBubbles(t *testing.T, f func(*testing.T)) {
	inBothBehaviours(t, func(t *testing.T) { synctest.Test(t, f) })
}

// checkEnd checks that err says why a call ended after some attempts, and reaches
// both that and the answer of the service.
func checkEnd(t *testing.T, err error, reason retry.Reason, attempts int) {
	t.Helper()
	stopped, ok := errors.AsType[*retry.Error](err)
	if !ok || stopped.Reason != reason || stopped.Attempts != attempts {
		t.Errorf("%v, want the reason %q after %d attempts", err, reason, attempts)
	}
	if _, ok := errors.AsType[*types.InternalServerError](err); !ok {
		t.Errorf("%v does not reach the answer of the service", err)
	}
}

func TestRetrySucceeds(t *testing.T) {
	inBubbles(t, func(t *testing.T) {
		b := bucket(500, 400)
		s := spying(b)
		if err := get(t.Context(), database(must(spillaws.New(spillaws.Config{Strategy: s})), play(busy, busy, ok))); err != nil {
			t.Error(err)
		}
		s.check(t, "begin", "refresh", "refresh", "succeed")
		if got := b.Stats(time.Now()).Tokens; got != 386 || s.key != "DynamoDB" {
			t.Errorf("%v tokens are left of %q, want 386 of DynamoDB", got, s.key)
		}
	})
}

// TestCallerLeavesWhileItWaits is where the SDK's retryers lose the tokens of the
// retry and the answer of the service.
func TestCallerLeavesWhileItWaits(t *testing.T) {
	inBubbles(t, func(t *testing.T) {
		b := bucket(500, 400)
		s := spying(b)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, cancel)
		begun := time.Now()
		err := get(ctx, database(must(spillaws.New(spillaws.Config{Strategy: s})), play(busy)))
		checkEnd(t, err, retry.ReasonCanceled, 1)
		if _, ok := errors.AsType[*aws.RequestCanceledError](err); !ok || !errors.Is(err, context.Canceled) {
			t.Errorf("%v does not say that the caller left", err)
		}
		s.check(t, "begin", "refresh", "release unsent")
		if got := b.Stats(time.Now()).Tokens; got != 400 || time.Since(begun) != 10*time.Millisecond {
			t.Errorf("%v tokens after %v, want 400 after 10 ms", got, time.Since(begun))
		}
	})
}

func TestCallerLeavesDuringTheRetry(t *testing.T) {
	inBubbles(t, func(t *testing.T) {
		b := bucket(500, 400)
		s := spying(b)
		ctx, cancel := context.WithCancel(t.Context())
		err := get(ctx, database(must(spillaws.New(spillaws.Config{Strategy: s})), play(busy, func(req *http.Request) (*http.Response, error) {
			cancel()
			return nil, req.Context().Err()
		})))
		checkEnd(t, err, retry.ReasonCanceled, 2)
		s.check(t, "begin", "refresh", "release")
		if got := b.Stats(time.Now()).Tokens; got != 386 {
			t.Errorf("%v tokens are left, want 386, as the retry was sent", got)
		}
	})
}

// TestNobodyWaitsForTooLate: a call ends at once if the wait would end after the deadline.
func TestNobodyWaitsForTooLate(t *testing.T) {
	inBubbles(t, func(t *testing.T) {
		b := bucket(500, 400)
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Millisecond)
		defer cancel()
		err := get(ctx, database(must(spillaws.New(spillaws.Config{Strategy: spying(b)})), play(busy)))
		checkEnd(t, err, retry.ReasonDeadline, 1)
		if got := b.Stats(time.Now()).Tokens; got != 400 || time.Since(begun) != 0 {
			t.Errorf("%v tokens after %v, want 400 at once", got, time.Since(begun))
		}
	})
}

func TestQuotaRejectionSaysSo(t *testing.T) {
	inBubbles(t, func(t *testing.T) {
		err := get(t.Context(), database(must(spillaws.New(spillaws.Config{Budget: bucket(500, 3)})), play(busy)))
		checkEnd(t, err, retry.ReasonBudget, 1)
		rejected, ok := errors.AsType[*retry.NotRetriedError](err)
		if !ok || rejected.Tokens != 3 || rejected.Capacity != 500 || rejected.Cost != 14 {
			t.Errorf("%+v does not give the level", rejected)
		}
		const want = "not retried: retry budget exhausted: 3 of 500 tokens left, a retry costs 14"
		if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "StatusCode: 500") {
			t.Errorf("%v does not say %q and the status", err, want)
		}
		if !fault.Of(err).DontRetry {
			t.Error("a layer above may retry what was retried here")
		}
	})
}

// TestPollIsHeldBack is what the SDK of 2026 does too, and the one before does not.
func TestPollIsHeldBack(t *testing.T) {
	inBubbles(t, func(t *testing.T) {
		for _, test := range []struct{ deadline, leave, waited time.Duration }{
			{time.Hour, time.Hour, 50 * time.Millisecond}, // t_0
			{20 * time.Millisecond, time.Hour, 0},         // in vain
			{time.Hour, 20 * time.Millisecond, 20 * time.Millisecond},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), test.deadline)
			timer := time.AfterFunc(test.leave, cancel)
			begun := time.Now()
			err := receive(ctx, queue(must(spillaws.New(spillaws.Config{Strategy: spying(bucket(500, 0))})), play(busy)))
			if time.Since(begun) != test.waited || statusOf(err) != http.StatusInternalServerError {
				t.Errorf("%v: %v after %v", test, err, time.Since(begun))
			}
			if errors.Is(err, context.Canceled) == timer.Stop() {
				t.Errorf("%v: %v", test, err)
			}
			cancel()
		}
	})
}

func TestFirstAttemptMayHaveToWait(t *testing.T) {
	inBubbles(t, func(t *testing.T) {
		late := &lateStrategy{}
		client := database(must(spillaws.New(spillaws.Config{Strategy: late})), play(ok))
		begun := time.Now()
		if err := get(t.Context(), client); err != nil || time.Since(begun) != time.Second {
			t.Errorf("%v after %v, want an answer after 1 s", err, time.Since(begun))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := get(ctx, client); !errors.Is(err, context.DeadlineExceeded) || !late.unsent {
			t.Errorf("%v, and the attempt counts as unsent: %v", err, late.unsent)
		}
	})
}

// A lateStrategy delays the first attempt by a second.
type lateStrategy struct {
	retry.TokenSource

	unsent bool
}

func (s *lateStrategy) Begin(call spillway.Call) retry.Token {
	return s.TokenSource.Begin(call, time.Second)
}

func (s *lateStrategy) Refresh(time.Time, retry.Token, fault.Failure) (retry.Token, error) {
	return retry.Token{}, errors.New("no retries")
}
func (s *lateStrategy) Succeed(retry.Token) error { return nil }
func (s *lateStrategy) Release(_ retry.Token, f fault.Failure) error {
	s.unsent = f.Unsent
	return nil
}

// TestPlainFailure is returned as it is.
func TestPlainFailure(t *testing.T) {
	inBubbles(t, func(t *testing.T) {
		s := spying(nil)
		err := get(t.Context(), database(must(spillaws.New(spillaws.Config{Strategy: s})), play(func(req *http.Request) (*http.Response, error) {
			return reply(req, http.StatusBadRequest, `{"__type":"ResourceNotFoundException"}`), nil
		})))
		if _, ok := errors.AsType[*retry.Error](err); ok || statusOf(err) != http.StatusBadRequest {
			t.Errorf("%v, want the answer as it is", err)
		}
		s.check(t, "begin", "release")
	})
}

// TestFinalFailure is one that says "no", whatever is wrapped around the Retryer.
func TestFinalFailure(t *testing.T) {
	inBubbles(t, func(t *testing.T) {
		s := spying(nil)
		always := func(o *dynamodb.Options) { o.Retryer = sdkretry.AddWithErrorCodes(o.Retryer, "InternalServerError") }
		_, err := database(must(spillaws.New(spillaws.Config{Strategy: s})), play(func(req *http.Request) (*http.Response, error) {
			resp, _ := busy(req)
			resp.Header.Set("X-Should-Retry", "false")
			return resp, nil
		})).GetItem(t.Context(), item, always)
		if _, ok := errors.AsType[*retry.Error](err); ok || statusOf(err) != http.StatusInternalServerError {
			t.Errorf("%v, want the answer as it is", err)
		}
		s.check(t, "begin", "refresh")
	})
}

// TestLocalRejection is of another policy of this process: neither retried nor paid.
func TestLocalRejection(t *testing.T) {
	inBubbles(t, func(t *testing.T) {
		b := bucket(500, 400)
		s := spying(b)
		rejection := &spillway.RejectedError{Policy: "throttle"}
		client := database(must(spillaws.New(spillaws.Config{Strategy: s})), play(failing(rejection), busy, failing(rejection)))
		if err := get(t.Context(), client); !errors.Is(err, spillway.ErrRejected) {
			t.Error(err)
		}
		err := get(t.Context(), client)
		if checkEnd(t, err, retry.ReasonUnsent, 1); !errors.Is(err, spillway.ErrRejected) {
			t.Error(err)
		}
		s.check(t, "begin", "release unsent", "begin", "refresh", "release unsent")
		if got := b.Stats(time.Now()).Tokens; got != 400 {
			t.Errorf("%v tokens are left, want 400", got)
		}
	})
}

func TestStrategyEndsCallByItself(t *testing.T) {
	inBubbles(t, func(t *testing.T) {
		err := get(t.Context(), database(must(spillaws.New(spillaws.Config{Strategy: spying(nil)})), play(busy, busy, busy)))
		checkEnd(t, err, retry.ReasonAttempts, 3)
	})
}

// TestWrappersOfTheSDK are the ones that make sense around a Retryer.
func TestWrappersOfTheSDK(t *testing.T) {
	inBubbles(t, func(t *testing.T) {
		s := spying(nil)
		r := must(spillaws.New(spillaws.Config{Strategy: s}))
		fewer := func(o *dynamodb.Options) { o.Retryer = sdkretry.AddWithMaxAttempts(o.Retryer, 2) }
		_, err := database(r, play(busy, busy)).GetItem(t.Context(), item, fewer)
		if e, ok := errors.AsType[*sdkretry.MaxAttemptsError](err); !ok || e.Attempt != 2 {
			t.Error(err)
		}
		s.check(t, "begin", "refresh", "release")

		more := func(o *dynamodb.Options) {
			o.Retryer = sdkretry.AddWithErrorCodes(o.Retryer, "ResourceNotFoundException")
		}
		_, err = database(r, play(func(req *http.Request) (*http.Response, error) {
			return reply(req, http.StatusBadRequest, `{"__type":"ResourceNotFoundException"}`), nil
		}, ok)).GetItem(t.Context(), item, more)
		if err != nil {
			t.Error(err)
		}
	})
}

var item = &dynamodb.GetItemInput{
	TableName: aws.String("t"),
	Key:       map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "1"}},
}

// notWrapped is the error of a call whose client has a Retryer without its Wrap.
func notWrapped(t *testing.T) error {
	t.Helper()
	_, err := must(spillaws.New(spillaws.Config{})).GetRetryToken(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "has this Retryer but not its Wrap") {
		t.Fatalf("outside a call: %v", err)
	}
	return err
}

// TestWrapperOfTheFirstVersion has no GetAttemptToken, so that the first attempt is not known until it has failed.
func TestWrapperOfTheFirstVersion(t *testing.T) {
	inBubbles(t, func(t *testing.T) {
		s := spying(nil)
		r := must(spillaws.New(spillaws.Config{Strategy: s}))
		wrapped := func(o *dynamodb.Options) { o.Retryer = struct{ aws.Retryer }{r} }
		if _, err := database(r, play(busy, busy, ok)).GetItem(t.Context(), item, wrapped); err != nil {
			t.Error(err)
		}
		s.check(t, "begin", "refresh", "refresh", "succeed")
		_, err := database(r, play(busy, failing(context.Canceled))).GetItem(t.Context(), item, wrapped)
		checkEnd(t, err, retry.ReasonCanceled, 2)
	})
}

// TestWrapIsNeeded says so, and sends nothing.
func TestWrapIsNeeded(t *testing.T) {
	inBubbles(t, func(t *testing.T) {
		r, service := must(spillaws.New(spillaws.Config{})), play(ok)
		client := dynamodb.New(databaseOptions(service), func(o *dynamodb.Options) { o.Retryer = r })
		if err := get(t.Context(), client); !errors.Is(err, notWrapped(t)) || service.n != 0 {
			t.Errorf("%v after %d attempts", err, service.n)
		}
		if _, err := r.GetRetryToken(t.Context(), nil); !errors.Is(err, notWrapped(t)) {
			t.Error(err)
		}
		if err := r.Wrap(middleware.NewStack("empty", smithyhttp.NewStackRequest)); err != nil {
			t.Error(err)
		}
	})
}

// TestCallWithinAnAttempt does not disturb the call around it, whether its client
// is wrapped or not.
func TestCallWithinAnAttempt(t *testing.T) {
	inBubbles(t, func(t *testing.T) {
		s := spying(nil)
		r := must(spillaws.New(spillaws.Config{Strategy: s}))
		wrapped := database(r, play(busy, ok))
		bare := dynamodb.New(databaseOptions(play(ok)), func(o *dynamodb.Options) { o.Retryer = r })
		err := get(t.Context(), database(r, play(busy, func(req *http.Request) (*http.Response, error) {
			if err := get(req.Context(), wrapped); err != nil {
				t.Error(err)
			}
			if err := get(req.Context(), bare); !errors.Is(err, notWrapped(t)) {
				t.Error(err)
			}
			return ok(req)
		})))
		if err != nil {
			t.Error(err)
		}
		s.check(t, "begin", "refresh", "begin", "refresh", "succeed", "succeed")
	})
}

// TestTwoRetryers shows that a Retryer that a client does not use after all is
// left alone.
func TestTwoRetryers(t *testing.T) {
	inBubbles(t, func(t *testing.T) {
		first, second := spying(nil), spying(nil)
		a, b := must(spillaws.New(spillaws.Config{Strategy: first})), must(spillaws.New(spillaws.Config{Strategy: second}))
		use := func(r aws.Retryer) func(*dynamodb.Options) {
			return func(o *dynamodb.Options) {
				o.Retryer = r
				o.APIOptions = append(o.APIOptions, b.Wrap)
			}
		}
		for _, r := range []aws.Retryer{a, b, sdkretry.NewStandard()} {
			if _, err := database(a, play(busy, ok)).GetItem(t.Context(), item, use(r)); err != nil {
				t.Error(err)
			}
		}
		first.check(t, "begin", "refresh", "succeed")
		second.check(t, "begin", "refresh", "succeed")
	})
}

// A stuck request cannot be sent twice.
type stuck struct{}

func (stuck) RewindStream() error { return errors.New("stuck") }

// TestRetryThatCannotBeSent is granted, and then given back.
func TestRetryThatCannotBeSent(t *testing.T) {
	inBubbles(t, func(t *testing.T) {
		s := spying(nil)
		r := must(spillaws.New(spillaws.Config{Strategy: s}))
		stack := middleware.NewStack("GetItem", func() any { return stuck{} })
		loop := sdkretry.NewAttemptMiddleware(r, func(request any) any { return request })
		if err := errors.Join(stack.Finalize.Add(loop, middleware.After), r.Wrap(stack)); err != nil {
			t.Fatal(err)
		}
		_, _, err := middleware.DecorateHandler(&service{failures: 1}, stack).Handle(t.Context(), nil)
		if err == nil || !strings.Contains(err.Error(), "stuck") || statusOf(err) != 503 {
			t.Errorf("%v, want both errors", err)
		}
		s.check(t, "begin", "refresh", "release unsent")
	})
}

func TestConfig(t *testing.T) {
	for _, test := range []struct {
		config spillaws.Config
		want   string
	}{
		{spillaws.Config{}, ""},
		{spillaws.Config{MaxAttempts: 5, Mode: aws.RetryModeAdaptive}, ""},
		{spillaws.Config{MaxAttempts: -1}, "MaxAttempts is -1"},
		{spillaws.Config{Mode: "legacy"}, `Mode is "legacy", must be "standard" or "adaptive"`},
		{spillaws.Config{Strategy: spying(nil), Budget: retry.Unlimited{}}, "Budget is set, must be nil where a Strategy is set"},
	} {
		r, err := spillaws.New(test.config)
		if got := fmt.Sprint(err); (err == nil) != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%+v: %v, want %q", test.config, err, test.want)
		}
		if (err == nil) != (r != nil) {
			t.Errorf("%+v: both %v and %v", test.config, r, err)
		}
	}
}
