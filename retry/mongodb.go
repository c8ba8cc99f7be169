package retry

import (
	"cmp"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/invalid"
)

// MongoDBConfig configures a [MongoDB]. The zero MongoDBConfig is the policy of the document with
// its defaults: no token bucket.
type MongoDBConfig struct {
	// Revision is the version of the document: "2026-02", whose rules are in the package
	// documentation, or "2026-07". Version 2026-07 has 2 retries, and waits up to 200 ms before the
	// first (100 ms·2^a). After an overload it takes [fault.Failure.RetryAfter] (the server's
	// baseBackoffMS) as the base instead of 100 ms, and not as the least delay. It deprioritises
	// overloaded servers only if Retarget is set. The empty string means "2026-02".
	Revision string
	// MaxRetries is the maximum number of retries of a call after one of its attempts met an
	// overload. Zero means 5 (revision 2026-07: 2); negative means none. Version 2026-02 of the
	// document does not allow other values.
	MaxRetries int
	// OtherRetries is the maximum number of retries of a call that has met no overload. They are
	// made at once. Zero means 1. Negative means that only the deadline limits them, or 1 for a
	// call without a deadline.
	OtherRetries int
	// NoReads and NoWrites switch off retries of reads and of writes. A call that is not known to
	// be either, such as runCommand, is retried only if neither is set.
	NoReads, NoWrites bool
	// Retarget deprioritises overloaded servers in revision 2026-07. Revision 2026-02 always does.
	Retarget bool
	// Backoff is the wait after an overload. Zero means {100 ms, 10 s}.
	Backoff Backoff
	// MaxRetryAfter is the longest hint for which a retry waits, in revision 2026-02. Zero means
	// one minute; negative means no limit.
	MaxRetryAfter time.Duration
	// Budget pays for retries after an overload (adaptive retries). The document has a bucket of
	// 1000 tokens that starts full. Nil means no budget.
	Budget Budget
	// Rand returns a number in [0, 1), and is safe for concurrent use. Nil means
	// math/rand/v2.Float64.
	Rand func() float64
}

// MongoDB retries calls that an overloaded backend rejected. The package documentation has its
// rules. It is safe for concurrent use. Make one with [NewMongoDB].
type MongoDB struct{ engine }

var _ Strategy = (*MongoDB)(nil)

// overloadRules are the rules of each revision.
var overloadRules = map[string]rules{
	"2026-02": {
		attempts: 2, overloadAttempts: 6, strict: true,
		overloadBackoff: Backoff{100 * time.Millisecond, 10 * time.Second},
		hint:            hintLeast,
		overloadCost:    1, first: 0.1, retried: 1.1, healthy: 1,
	},
	"2026-07": {
		attempts: 2, overloadAttempts: 3, strict: true, stay: true,
		overloadBackoff: Backoff{100 * time.Millisecond, 10 * time.Second}, exponent: 1,
		hint:         hintBase,
		overloadCost: 1, first: 0.1, retried: 1.1, healthy: 1,
	},
}

// NewMongoDB returns a MongoDB. An error names the field of c that is out of range.
func NewMongoDB(c MongoDBConfig) (*MongoDB, error) {
	r, err := c.rules()
	if err != nil {
		return nil, err
	}
	if c.Budget == nil {
		c.Budget = Unlimited{}
	}
	o := new(MongoDB)
	o.configure(r, c.Budget, c.Rand)
	return o, nil
}

func (c *MongoDBConfig) rules() (rules, error) {
	r, ok := overloadRules[cmp.Or(c.Revision, "2026-02")]
	if !ok {
		return r, invalid.Field("retry", "Revision", c.Revision, `"2026-02" or "2026-07"`)
	}
	r.overloadAttempts = cmp.Or(max(c.MaxRetries, -1), r.overloadAttempts-1) + 1
	switch {
	case c.OtherRetries > 0:
		r.attempts = 1 + c.OtherRetries
	case c.OtherRetries < 0:
		r.attempts = untilDeadline
	}
	r.noReads, r.noWrites = c.NoReads, c.NoWrites
	r.stay = r.stay && !c.Retarget
	r.maxRetryAfter = cmp.Or(c.MaxRetryAfter, time.Minute)
	var v validator
	v.backoff(c.Backoff, &r.overloadBackoff)
	return r, v.err
}

// Begin implements [Strategy].
func (o *MongoDB) Begin(call spillway.Call) Token { return o.issuer.begin(&call, 0) }
