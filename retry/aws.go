package retry

import (
	"cmp"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/invalid"
	"github.com/seed90641741/spillway/internal/tokens"
)

// AWSStandardConfig configures an [AWSStandard]. The zero AWSStandardConfig is the standard
// mode of AWS SDKs since 2026.
type AWSStandardConfig struct {
	// Revision is "2.1" or "2.0". The empty string means "2.1".
	Revision string
	// MaxAttempts is the maximum number of attempts of a call, the first one included. Zero means
	// 3; it must not be negative.
	MaxAttempts int
	// Base is the longest wait before the first retry, unless the backend was overloaded. Zero
	// means 50 ms (revision 2.0: 1 s).
	Base time.Duration
	// OverloadBase is the longest wait before the first retry after an overload. Zero means 1 s.
	OverloadBase time.Duration
	// MaxBackoff is the longest wait without a hint from the backend. Zero means 20 s.
	MaxBackoff time.Duration
	// MaxRetryAfter is the longest hint for which a retry waits. It is for revision 2.0 only,
	// because 2.1 waits at most 5 s longer than without a hint. Zero means one minute; negative
	// means no limit.
	MaxRetryAfter time.Duration
	// Prices are the costs of retries, in tokens.
	Prices Prices
	// Budget pays for retries. Nil means a separate bucket of 500 tokens that starts full;
	// [Unlimited] means no budget.
	Budget Budget
	// Rand returns a number in [0, 1), and is safe for concurrent use. Nil means
	// math/rand/v2.Float64.
	Rand func() float64
}

// Prices are what retries cost an [AWSStandard], and what a success earns, in tokens. Zero means
// the number of the revision; negative means nothing. A retry that succeeds gets its cost back.
type Prices struct {
	Retry    float64 // after any other failure: 14 (revision 2.0: 5)
	Overload float64 // after an overload: 5
	Timeout  float64 // after a timeout: 14 (revision 2.0: 10)
	Success  float64 // earned when a first attempt succeeds: 1
}

// AWSStandard is the standard retry strategy of Smithy clients. The package documentation has its
// rules. It is safe for concurrent use. Make one with [NewAWSStandard].
type AWSStandard struct{ engine }

var _ Strategy = (*AWSStandard)(nil)

// standardRules are the rules of each revision.
var standardRules = map[string]rules{
	"2.1": {
		attempts:        3,
		backoff:         Backoff{50 * time.Millisecond, 20 * time.Second},
		overloadBackoff: Backoff{time.Second, 20 * time.Second},
		hint:            hintClamp,
		cost:            14, overloadCost: 5, timeoutCost: 14, first: 1, refund: true,
	},
	"2.0": {
		attempts:        3,
		backoff:         Backoff{time.Second, 20 * time.Second},
		overloadBackoff: Backoff{time.Second, 20 * time.Second},
		hint:            hintLeast,
		cost:            5, overloadCost: 5, timeoutCost: 10, first: 1, refund: true,
	},
}

// NewAWSStandard returns an AWSStandard. An error names the field of c that is out of range.
func NewAWSStandard(c AWSStandardConfig) (*AWSStandard, error) {
	r, err := c.rules()
	if err != nil {
		return nil, err
	}
	if c.Budget == nil {
		c.Budget = newBucket(tokens.StandardCapacity, tokens.StandardCapacity)
	}
	s := new(AWSStandard)
	s.configure(r, c.Budget, c.Rand)
	return s, nil
}

func (c *AWSStandardConfig) rules() (rules, error) {
	r, ok := standardRules[cmp.Or(c.Revision, "2.1")]
	if !ok {
		return r, invalid.Field("retry", "Revision", c.Revision, `"2.1" or "2.0"`)
	}
	var v validator
	v.count("MaxAttempts", c.MaxAttempts, &r.attempts)
	r.overloadAttempts = r.attempts
	v.duration("Base", c.Base, &r.backoff.Base)
	v.duration("OverloadBase", c.OverloadBase, &r.overloadBackoff.Base)
	v.duration("MaxBackoff", c.MaxBackoff, &r.backoff.Max)
	v.duration("MaxBackoff", c.MaxBackoff, &r.overloadBackoff.Max)
	r.maxRetryAfter = cmp.Or(c.MaxRetryAfter, time.Minute)
	v.tokens("Prices.Retry", c.Prices.Retry, &r.cost)
	v.tokens("Prices.Overload", c.Prices.Overload, &r.overloadCost)
	v.tokens("Prices.Timeout", c.Prices.Timeout, &r.timeoutCost)
	v.tokens("Prices.Success", c.Prices.Success, &r.first)
	return r, v.err
}

// Begin implements [Strategy].
func (s *AWSStandard) Begin(call spillway.Call) Token { return s.issuer.begin(&call, 0) }
