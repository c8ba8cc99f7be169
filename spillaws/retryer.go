package spillaws

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdkretry "github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go/middleware"

	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/invalid"
	"github.com/seed90641741/spillway/retry"
)

// Config configures a [Retryer]. The zero Config is the standard mode of AWS SDKs
// since 2026, with a separate budget.
type Config struct {
	// Strategy decides about retries. Nil means an [retry.AWSStandard] of revision 2.1
	// with the MaxAttempts and the Budget given here.
	Strategy retry.Strategy
	// Budget pays for the retries of the default Strategy, and may be shared with
	// other clients, of whatever protocol. Nil means a bucket of 500 tokens. A
	// Strategy brings its own: setting both is an error.
	Budget retry.Budget
	// MaxAttempts is after how many attempts the SDK ends a call, first one
	// included. More of them let a call survive a longer disturbance, and multiply
	// the load of one. Zero means 3, or with a Strategy that it alone decides; the
	// SDK then sends no maximum to the service. It must not be negative.
	MaxAttempts int
	// Mode is aws.RetryModeStandard, or aws.RetryModeAdaptive to also let the SDK's
	// own limiter delay attempts once the service throttles. That bounds the load
	// that first attempts make, and delays calls of every kind behind calls that
	// were throttled. Empty means standard.
	Mode aws.RetryMode
	// RetryAfter says that the header Retry-After of a failure counts, where there
	// is no X-Amz-Retry-After. Services of AWS do not send it to be heeded, and AWS
	// SDKs of 2026 do not; set it for services that are only compatible.
	RetryAfter bool
}

// A Retryer is an [aws.RetryerV2] that leaves the decisions to a
// [retry.Strategy]. It is safe for concurrent use and may serve any number of
// clients. Make one with [Install], or with [New] for a single client.
//
// A client needs both the Retryer and its Wrap. The SDK's functions that wrap a
// Retryer work as they do with others, but for AddWithMaxBackoffDelay, whose wait
// comes on top. A wrapper of your own should embed [aws.RetryerV2]: one without GetAttemptToken
// hides first attempts, so that their successes earn nothing for the budget, and adaptive mode delays none.
type Retryer struct {
	strategy    retry.Strategy
	maxAttempts int
	sender      *sdkretry.AdaptiveMode // nil in standard mode
	retryAfter  bool
}

var _ aws.RetryerV2 = (*Retryer)(nil)

// New returns a Retryer, or an error that names the field of c that is wrong. To
// give it to one client:
//
//	client := dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
//		o.Retryer = r
//		o.APIOptions = append(o.APIOptions, r.Wrap)
//	})
func New(c Config) (*Retryer, error) {
	if c.MaxAttempts < 0 {
		return nil, invalid.Field("spillaws", "MaxAttempts", c.MaxAttempts, "0 or more")
	}
	if c.Strategy != nil && c.Budget != nil {
		return nil, invalid.Field("spillaws", "Budget", c.Budget, "nil where a Strategy is set: give the budget to the Strategy")
	}
	r := &Retryer{strategy: c.Strategy, maxAttempts: c.MaxAttempts, retryAfter: c.RetryAfter}
	switch c.Mode {
	case "", aws.RetryModeStandard:
	case aws.RetryModeAdaptive:
		r.sender = sdkretry.NewAdaptiveMode(hearsAll)
	default:
		return nil, invalid.Field("spillaws", "Mode", c.Mode, "%q or %q", aws.RetryModeStandard, aws.RetryModeAdaptive)
	}
	if err := r.standard(c.Budget); err != nil {
		return nil, err
	}
	return r, nil
}

// hearsAll has the adaptive mode take the same answers for throttling as the Retryer does.
func hearsAll(o *sdkretry.AdaptiveModeOptions) {
	o.Throttles = append(o.Throttles, sdkretry.IsErrorThrottleFunc(func(err error) aws.Ternary {
		said := hear(err)
		return aws.BoolTernary(said.throttles())
	}))
}

// standard gives r the default strategy, unless it has one.
func (r *Retryer) standard(b retry.Budget) error {
	if r.strategy != nil {
		return nil
	}
	if r.maxAttempts == 0 {
		r.maxAttempts = sdkretry.DefaultMaxAttempts
	}
	s, err := retry.NewAWSStandard(retry.AWSStandardConfig{MaxAttempts: r.maxAttempts, Budget: b})
	if err != nil {
		return invalid.In("spillaws", "", err)
	}
	r.strategy = s
	return nil
}

// Wrap puts r around the retry loop of a call. It is made to be one of the
// APIOptions of a client, and does nothing to a stack without such a loop.
func (r *Retryer) Wrap(stack *middleware.Stack) error {
	w := &wrapper{retryer: r}
	loop, err := stack.Finalize.Swap(loopID, w)
	if err == nil {
		w.loop = loop
	}
	return nil // a stack without a loop has no use for a Retryer
}

// errNotWrapped is what every call ends with that is not wrapped.
var errNotWrapped = errors.New("spillaws: the client has this Retryer but not its Wrap (use spillaws.Install, or add Wrap to the APIOptions)")

// MaxAttempts implements [aws.Retryer].
func (r *Retryer) MaxAttempts() int { return r.maxAttempts }

// IsErrorRetryable implements [aws.Retryer]. It depends on what the error means
// alone; whether the call is retried, the strategy decides.
func (r *Retryer) IsErrorRetryable(err error) bool { return safety(err) == fault.RetrySafe }

// GetAttemptToken implements [aws.RetryerV2]. The first time it begins the call
// with the strategy. It waits where the strategy or the adaptive mode requires the
// attempt to. The token is for the SDK only: its return says nothing, since the
// SDK returns some of them and others not.
func (r *Retryer) GetAttemptToken(ctx context.Context) (func(error) error, error) {
	c := r.callOf(ctx)
	if c == nil {
		return nil, errNotWrapped
	}
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	return ignore, nil
}

// GetRetryToken implements [aws.Retryer]: it asks the strategy for a retry, and
// waits as that says. If there is to be no retry, or ctx ends, the call has ended
// with an error that reaches err as well, and nothing is left to pay.
func (r *Retryer) GetRetryToken(ctx context.Context, err error) (func(error) error, error) {
	c := r.callOf(ctx)
	if c == nil {
		return nil, errNotWrapped
	}
	if why := c.retry(ctx, err); why != nil {
		return nil, why
	}
	return ignore, nil
}

// RetryDelay implements [aws.Retryer]. The wait is over when the SDK asks for it,
// as only GetRetryToken knows the call. The delay is negative, as the SDK of 2026
// adds up to five seconds for X-Amz-Retry-After, which the strategy has counted.
func (r *Retryer) RetryDelay(int, error) (time.Duration, error) { return math.MinInt64 / 2, nil }

// GetInitialToken implements [aws.Retryer]. The SDK calls GetAttemptToken in its
// place.
//
// Deprecated: use GetAttemptToken.
func (r *Retryer) GetInitialToken() func(error) error { return ignore }

func ignore(error) error { return nil }
