package budget

import (
	"math"
	"time"

	"github.com/seed90641741/spillway/internal/invalid"
	"github.com/seed90641741/spillway/internal/tokens"
)

// RetryThrottling is the retryThrottling policy of a gRPC service config:
//
//	failure: tokens = max(0, tokens - 1)
//	success: tokens = min(maxTokens, tokens + tokenRatio)
//	a retry is allowed while tokens > maxTokens/2
//
// It starts full, and gRPC keeps one for each server name. It counts events and not tokens, so it
// ignores the amounts that a strategy passes to Withdraw and Deposit: each Withdraw is one failure
// that asks for a retry, and each Deposit one success. Use it with a strategy that deposits only
// once for each success: retry.AWSStandard. Let the retries of that strategy cost 1, so that its
// rejections report the right cost. The budget does not see a failure without a retry, such as the
// failure of the last attempt. An adapter that must count it calls Withdraw itself.
//
// Source: gRFC A6, "Throttling Retry Attempts and Hedged RPCs". It is safe for concurrent use. Make
// one with [NewRetryThrottling].
type RetryThrottling struct {
	level            tokens.Level
	max, half, ratio int64 // in units of package tokens
}

// NewRetryThrottling returns a policy with these numbers, for which A6 has no defaults. maxTokens
// must be above 0 and at most 1000, tokenRatio at least 0.001. As in A6, only three decimals of
// tokenRatio count.
func NewRetryThrottling(maxTokens, tokenRatio float64) (*RetryThrottling, error) {
	switch {
	case !(maxTokens > 0 && maxTokens <= 1000):
		return nil, invalid.Field("budget", "maxTokens", maxTokens, "above 0 and at most 1000")
	case !(tokenRatio >= 0.001 && tokenRatio <= math.MaxInt32):
		return nil, invalid.Field("budget", "tokenRatio", tokenRatio, "at least 0.001")
	}
	// Adding 1e-6 keeps the third decimal of a ratio such as 1.001: times 1000 it is just below
	// 1001.
	ratio := math.Floor(float64(tokenRatio*1000)+1e-6) / 1000
	r := &RetryThrottling{max: tokens.Units(maxTokens), half: tokens.Units(maxTokens) / 2, ratio: tokens.Units(ratio)}
	r.level.Add(r.max, r.max)
	return r, nil
}

// Withdraw counts a failure, and reports whether a retry may follow. Only tokens above half of
// maxTokens pay for retries, so left and capacity are without that half.
func (r *RetryThrottling) Withdraw(time.Time, string, float64) (left, capacity float64, ok bool) {
	usable := max(0, r.level.Drop(tokens.Unit)-r.half)
	return tokens.Float(usable), tokens.Float(r.max - r.half), usable > 0
}

// Deposit counts a success.
func (r *RetryThrottling) Deposit(string, float64) { r.level.Add(r.ratio, r.max) }

// Tokens returns the number of tokens, at most maxTokens.
func (r *RetryThrottling) Tokens() float64 { return tokens.Float(r.level.Load()) }
