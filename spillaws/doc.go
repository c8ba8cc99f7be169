// Package spillaws puts the retry strategies and budgets of Spillway into clients
// of the AWS SDK for Go v2, in two ways.
//
// A [Retryer] decides by any [retry.Strategy], in all clients of a configuration:
//
//	cfg, err := config.LoadDefaultConfig(ctx)
//	…
//	retryer, err := spillaws.Install(&cfg, spillaws.Config{Budget: shared})
//	client := dynamodb.NewFromConfig(cfg)
//
// A [RateLimiter] keeps the SDK's own strategy and only lets it pay from a budget.
// In both ways one budget can serve these clients and clients of other protocols.
//
// # Two behaviours of the SDK
//
// The retry loop of the SDK asks an [aws.RetryerV2]. It was changed in 2026, for
// programs that set AWS_NEW_RETRIES_2026 first and for all in November:
//
//	                                 before      since
//	attempt passed to RetryDelay     from 1      from 0
//	token of an attempt is returned  always      for the first attempt only
//	X-Amz-Retry-After                ignored     added to RetryDelay, up to 5 s
//	polls without budget             return      wait first
//	a caller that leaves in a wait   the retry's token is never returned, and the
//	                                 error has lost what the service answered
//
// A Retryer depends on none of these. [Retryer.Wrap] puts it around the loop of
// each call, where it sees the call begin and end, and every attempt with its
// outcome, and hands out tokens that mean nothing. It waits in GetRetryToken, the
// only one of the loop's questions that comes with a context; RetryDelay is
// negative, which the loop takes for "now" whatever it adds. So a retry that was
// granted and not sent is paid back, for whatever reason it was not: the caller
// left, the body cannot be rewound, another policy rejected. A call that panics is
// settled too.
//
// A client that has the Retryer without its Wrap fails every call with an error
// that says so.
//
// # What an error means
//
//	500, 502, 503, 504, RequestTimeout…    safe to retry
//	broken, rejected or slow connection     safe to retry
//	Throttling… and its kin, SlowDown, …   overloaded; safe to retry
//	429                                    the same, whatever the code
//	clock skew, as the SDK finds it        safe to retry
//	no such host, the caller left          not
//	X-Should-Retry: false                  not: "overloaded; don't retry"
//	anything else                          not known, so not retried
//
// The tables of codes are the SDK's own. 429 departs from the SDK for Go, and not
// from those for TypeScript and Java, nor from Smithy's guide. An error of package
// [fault], such as the rejection of a protected [net/http.RoundTripper] below the
// client, is believed first. What a retry costs, the strategy says.
//
// X-Amz-Retry-After counts as the strategy reads hints: within 5 s of the
// delay in revision 2.1 of [retry.AWSStandard], as the least delay elsewhere.
// Retry-After counts only if [Config.RetryAfter] is set.
//
// A call of SQS ReceiveMessage, SFN GetActivityTask, SWF PollForActivityTask or
// PollForDecisionTask is a long poll. If there is no budget for its retry, it
// waits before it returns the error, as its caller will poll again at once.
//
// # What the caller gets
//
// A call that is not retried, or not asked again because the SDK's MaxAttempts are
// reached, fails with the error that it would have without this package. Otherwise
// the error is a [retry.Error]: it says why there was no other attempt, decided
// here or by the caller's leaving, with the level of the budget where that was it,
// and it reaches the last answer of the service.
//
// # What it costs
//
// Compared with the SDK's Standard, with no wait for the retry:
//
//	                        first attempt succeeds      one retry
//	allocations             1 fewer                     18 fewer
//	the loop alone          +0.15 of 2.1 µs             -1.3 of 6.7 µs
//	GetItem, no network     +0.3 to 0.8 of 27 µs
//	GetItem, loopback       +0.2 to 0.9 of 56 µs
//
// Of the 0.15 µs, 0.06 are for any middleware around the loop, without which no retryer
// sees a call end; 0.04 for following the attempt; 0.03 for the context that tells
// the loop's questions of one call from the questions of another; and 0.03 for describing
// the call to the strategy. In a whole call 17 lookups of the SDK pass through that
// context, and the description looks further. A [RateLimiter] costs what the SDK's
// own does.
//
// # Settings
//
// AWS_RETRY_MODE, AWS_MAX_ATTEMPTS, retry_mode and max_attempts are read by the
// SDK, which reports what it does not know, such as the mode legacy; [Install]
// takes them from the configuration. In the mode adaptive, attempts also wait for
// the limiter of the SDK's AdaptiveMode. It hears of every attempt that was sent; that of the
// SDK itself does not, since 2026, hear of retries, nor take each 429 for throttling.
//
// Clients of DynamoDB make 4 attempts with delays from 25 ms on if they have no
// Retryer. With one they do as the others do; the example of New gives them theirs.
//
// # Smithy's interfaces
//
// "Retrying Requests" of Smithy's documentation has four interfaces, and these are
// the types that represent them:
//
//	RetryStrategy                [retry.Strategy]
//	  acquireInitialToken          Begin: told the call; never fails
//	  refreshRetryToken            Refresh: told the time and a Failure, not an error
//	  recordSuccess                Succeed
//	  -                            Release: the call ended in another way
//	  TokenAcquisitionFailed…      [retry.NotRetriedError], which says why
//	RetryToken                   [retry.Token]
//	  delay                        Delay
//	  state of the call            [retry.State], from [retry.TokenSource.Claim]
//	  used twice, or foreign       [retry.ErrTokenUsed], [retry.ErrForeignToken]
//	RetryInfo                    [fault.Failure], which [Classify] returns for errors of AWS
//	  isRetrySafe                  Safety: RetrySafe, RetryUnsafe, RetryUnknown; error types: [fault.RetrySafety]
//	  isThrottle                   Overload; [fault.Throttler]
//	  isTimeout                    Timeout; the method Timeout of the standard library
//	  retryAfter                   RetryAfter; [fault.RetryAfterer]
//	ErrorInfo                    [fault.Failure]
//	  fault                        Party: Client, Server, Other; [fault.Faulter]
//
// A strategy of the user implements [retry.Strategy], with the help of a
// [retry.TokenSource]; the example of Config shows one. Package retry says where its
// strategies depart from the example of the guide, and why.
package spillaws
