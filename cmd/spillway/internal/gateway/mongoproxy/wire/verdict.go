package wire

import (
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/mongowire"
)

// errorSize is the maximum size to which a compressed answer is expanded to look for an error.
const errorSize = 4 << 10

// A Verdict is the parsed content of an answer.
type Verdict struct {
	More       bool // another one follows
	Failed     bool
	Overloaded bool // SystemOverloadedError
	Retryable  bool // RetryableError
	Code       int32
	Base       time.Duration
}

// Outcome returns the outcome of the answer for the policies of the server.
func (v Verdict) Outcome() spillway.Outcome {
	switch {
	case v.Overloaded:
		return spillway.OutcomeOverloaded
	case v.Failed:
		return spillway.OutcomeFailed
	default:
		return spillway.OutcomeServed
	}
}

// Fate returns the outcome to report for the command: an error counts as an answer, unless it
// is a timeout or is caused by the state of the server rather than by the command.
func (v Verdict) Fate() spillway.Outcome {
	if !v.Failed || v.Overloaded {
		return v.Outcome()
	}
	switch v.Code {
	case 50, 262: // MaxTimeMSExpired, ExceededTimeLimit
		return spillway.OutcomeTimedOut
	case 0, 1, 6, 7, 8, // InternalError, HostUnreachable, HostNotFound, UnknownError
		89, 91, 133, 189, 9001, // NetworkTimeout, ShutdownInProgress, FailedToSatisfyReadPreference, PrimarySteppedDown, SocketException
		10058, 10107, 11600, 11602, 13435, 13436: // of members that are not what they were, or end
		return spillway.OutcomeFailed
	default:
		return spillway.OutcomeServed
	}
}

// Failure returns the failure for the retry policy.
func (v Verdict) Failure() fault.Failure {
	f := fault.Failure{Overload: v.Overloaded, Safety: fault.RetryUnsafe, RetryAfter: v.Base, HasRetryAfter: v.Base > 0}
	if v.Overloaded && v.Retryable {
		f.Safety = fault.RetrySafe
	}
	return f
}

// Judge reads an answer. Answers that are too long for a failure are no failure. Where one
// is compressed it is only expanded if it is that short, or if several may follow one
// another. A malformed document is no failure: the client will report it.
func Judge(f Frame, scratch []byte, stream bool) (v Verdict, err error) {
	if f.OpCode == mongowire.OpCompressed && !stream {
		if z, ok := mongowire.ParseCompressed(f.Head[mongowire.HeaderSize:]); ok && z.Size > errorSize {
			return v, nil
		}
	}
	flags, doc, whole, err := f.answer(scratch)
	if err != nil {
		return v, err
	}
	if whole {
		v.read(doc)
	}
	v.More = flags&mongowire.MoreToCome != 0
	return v, nil
}

// CursorOf returns the number of the cursor in an answer, 0 at its end. An answer that is too long has none.
func CursorOf(f Frame, scratch []byte) (id int64, ok bool) {
	_, doc, _, err := f.answer(scratch)
	if err != nil {
		return 0, false
	}
	return int64Of(mongowire.Lookup(mongowire.Lookup(doc, "cursor").Document(), "id"))
}

func (v *Verdict) read(doc []byte) {
	if ok := mongowire.Lookup(doc, "ok"); ok.Kind == 0 || ok.True() {
		return
	}
	v.Failed = true
	if n, ok := mongowire.Lookup(doc, "code").Number(); ok {
		v.Code = int32(n)
	}
	for _, label := range mongowire.Elements(mongowire.Lookup(doc, "errorLabels").Array()) {
		switch string(label.Text()) {
		case "SystemOverloadedError":
			v.Overloaded = true
		case "RetryableError":
			v.Retryable = true
		}
	}
	if ms, ok := mongowire.Lookup(doc, "baseBackoffMS").Number(); ok && ms > 0 {
		v.Base = time.Duration(min(ms, 10_000) * float64(time.Millisecond))
	}
}
