package retry

import (
	"cmp"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/tokens"
)

// BudgetedConfig configures a [Budgeted]. The zero BudgetedConfig has the numbers of the SRE
// chapter.
type BudgetedConfig struct {
	// MaxAttempts is the maximum number of attempts of a call, the first one included. Zero means
	// 3; it must not be negative.
	MaxAttempts int
	// Ratio is the number of tokens that a first attempt earns, and so the maximum number of
	// retries for each first attempt. With a higher Ratio, calls survive more failures, and an
	// overloaded backend gets more load. Zero means 0.1; negative means none, for a Budget that
	// earns in another way.
	Ratio float64
	// Backoff is the wait before a retry. The zero Backoff retries at once, as in the chapter,
	// where retries go to another task. Set it if retries may reach the same task. After a
	// rejection by one task only ([fault.ScopeTask]) the wait is always short: 0 to 5 ms, then 0 to
	// 10 ms.
	Backoff Backoff
	// MaxRetryAfter is the longest hint from the backend for which a retry waits. Zero means one
	// minute; negative means no limit. No retry waits for a hint of one task only, because the hint
	// is for that task.
	MaxRetryAfter time.Duration
	// Budget pays one token for each retry. Nil means a separate bucket of 1000·Ratio tokens. It
	// starts with 30·Ratio (3) on credit, which the first 30 first attempts repay. A bucket that
	// starts full allows more retries than Ratio until it has been empty once. With [Unlimited],
	// only MaxAttempts limits retries. Rejections of customers over their quota have another bucket
	// of the same size, without the credit, unless Ratio is negative.
	Budget Budget
	// Rand returns a number in [0, 1), and is safe for concurrent use. Nil means
	// math/rand/v2.Float64.
	Rand func() float64
}

// A Budgeted limits retries to a share of the calls. The package documentation has its rules. It is
// safe for concurrent use. Make one with [NewBudgeted].
type Budgeted struct{ engine }

var _ Strategy = (*Budgeted)(nil)

// elsewhere is the wait before a retry that goes to another task. It spreads out calls that one
// task has rejected together, for example after a pause; otherwise the next task would get them as
// one burst. It is too short for a caller to notice. It does not depend on Backoff, which is for
// the same task.
var elsewhere = Backoff{Base: 5 * time.Millisecond, Max: 20 * time.Millisecond}

// NewBudgeted returns a Budgeted. An error names the field of c that is out of range.
func NewBudgeted(c BudgetedConfig) (*Budgeted, error) {
	r := rules{attempts: 3, first: tokens.DefaultRatio, cost: 1, overloadCost: 1, timeoutCost: 1, elsewhere: elsewhere}
	r.maxRetryAfter = cmp.Or(c.MaxRetryAfter, time.Minute)
	var v validator
	v.count("MaxAttempts", c.MaxAttempts, &r.attempts)
	v.tokens("Ratio", c.Ratio, &r.first)
	v.backoff(c.Backoff, &r.backoff)
	if v.err != nil {
		return nil, v.err
	}
	r.overloadAttempts, r.overloadBackoff, r.firstFailed = r.attempts, r.backoff, r.first
	if c.Budget == nil {
		c.Budget = newEarnedBucket(r.first)
	}
	b := new(Budgeted)
	if _, unlimited := c.Budget.(Unlimited); !unlimited && r.first > 0 {
		b.quota = newBucket(0, tokens.EarningCalls*r.first)
	}
	b.configure(r, c.Budget, c.Rand)
	return b, nil
}

// Begin implements [Strategy].
func (b *Budgeted) Begin(call spillway.Call) Token { return b.issuer.begin(&call, 0) }
