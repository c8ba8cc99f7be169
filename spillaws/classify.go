package spillaws

import (
	"errors"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdkretry "github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/seed90641741/spillway/fault"
)

// Classify returns what it means that an attempt, or a call, of an AWS client
// ended with err. The package documentation has the rules. A [Retryer] follows
// them; use Classify with your own loop, such as [retry.Do] around a client
// with an [aws.NopRetryer].
func Classify(err error) fault.Failure {
	f := describeFailure(err, false)
	f.Safety = safety(err)
	return f
}

// failure returns what err means to r. Whether a retry is safe, it says only if
// the error does so itself: the SDK asks IsErrorRetryable about that.
func (r *Retryer) failure(err error) fault.Failure { return describeFailure(err, r.retryAfter) }

// meaning returns what the error of an attempt means.
func (r *Retryer) meaning(err error) fault.Failure {
	f := r.failure(err)
	f.Unsent = f.Unsent || err != nil && !departed(err)
	return f
}

// departed reports whether the request of an attempt came as far as the HTTP client. If it did not, it had no credentials, no address
// or no signature. The error of another operation, which was to bring the credentials, says nothing about this one.
func departed(err error) bool {
	if _, ok := errors.AsType[*smithy.OperationError](err); ok {
		return false
	}
	if _, ok := errors.AsType[*smithyhttp.RequestSendError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*smithy.DeserializationError](err); ok {
		return true
	}
	said := hear(err)
	return said.response != nil || said.code != "" || said.canceled
}

// safety returns whether err may be followed by a retry. What forbids it comes
// first. The SDK's own checks come last, as they are slow, and right for what is
// no answer of a service.
func safety(err error) fault.Safety {
	own, said := fault.Of(err), hear(err)
	switch {
	case own.Safety == fault.RetryUnsafe, own.DontRetry, own.Canceled, own.Unsent && own.Safety != fault.RetrySafe, said.canceled, said.rejects():
		return fault.RetryUnsafe
	case said.retryable != aws.UnknownTernary:
		return safetyOf(said.retryable)
	case own.Safety == fault.RetrySafe && !own.Unsent, said.transient(), said.throttles():
		return fault.RetrySafe
	default:
		return safetyOf(sdkretry.IsErrorRetryables(sdkretry.DefaultRetryables).IsErrorRetryable(err))
	}
}

func safetyOf(retryable aws.Ternary) fault.Safety {
	switch retryable {
	case aws.TrueTernary:
		return fault.RetrySafe
	case aws.FalseTernary:
		return fault.RetryUnsafe
	default:
		return fault.RetryUnknown
	}
}

// describeFailure returns what err means, apart from its safety. If standardHint is
// set, the header Retry-After counts.
func describeFailure(err error, standardHint bool) fault.Failure {
	f, said := fault.Of(err), hear(err)
	f.Overload = f.Overload || said.throttles()
	f.Canceled = f.Canceled || said.canceled
	f.DontRetry = f.DontRetry || said.rejects()
	if f.Party == fault.Other {
		f.Party = said.party()
	}
	if said.response != nil && !f.HasRetryAfter {
		f.RetryAfter, f.HasRetryAfter = hintOf(said.response.Header, standardHint)
	}
	return f
}

// transient reports whether the answer is one that AWS SDKs repeat for other
// reasons than overload.
func (w *words) transient() bool {
	_, byStatus := sdkretry.DefaultRetryableHTTPStatusCodes[w.status()]
	_, byCode := sdkretry.DefaultRetryableErrorCodes[w.code]
	return byStatus || byCode
}

// throttles reports whether the answer is for lack of capacity or quota.
func (w *words) throttles() bool {
	_, byCode := sdkretry.DefaultThrottleErrorCodes[w.code]
	return byCode || w.status() == http.StatusTooManyRequests
}

// rejects reports whether the answer says "overloaded; don't retry".
func (w *words) rejects() bool { return w.response != nil && rejects(w.response.Header) }
