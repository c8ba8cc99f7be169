package mongoproxy

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/mongowire"
)

// errorSize is the most that an answer which says that a command has failed is
// expanded for.
const errorSize = 4 << 10

// A verdict is what an answer says.
type verdict struct {
	more       bool // another one follows
	failed     bool
	overloaded bool // SystemOverloadedError
	retryable  bool // RetryableError
	code       int32
	base       time.Duration
}

func (v verdict) outcome() spillway.Outcome {
	switch {
	case v.overloaded:
		return spillway.OutcomeOverloaded
	case v.failed:
		return spillway.OutcomeFailed
	default:
		return spillway.OutcomeServed
	}
}

// fate is what is told of the command: an error is an answer like any other, unless it
// says that there was no time left, or that the server could not do what it was asked
// to, whatever that was.
func (v verdict) fate() spillway.Outcome {
	if !v.failed || v.overloaded {
		return v.outcome()
	}
	switch v.code {
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

// failure is what the retry policy is told.
func (v verdict) failure() fault.Failure {
	f := fault.Failure{Overload: v.overloaded, Safety: fault.No, RetryAfter: v.base, HasRetryAfter: v.base > 0}
	if v.overloaded && v.retryable {
		f.Safety = fault.Yes
	}
	return f
}

// judge reads an answer. Those that are too long for a failure are none. Where one
// is compressed it is only expanded if it is that short, or if several may follow one
// another.
func judge(f frame, scratch []byte, stream bool) (v verdict, err error) {
	payload, whole := f.head[mongowire.HeaderSize:], f.rest == 0
	code := f.OpCode
	if code == mongowire.OpCompressed {
		z, ok := mongowire.ParseCompressed(payload)
		if !ok {
			return v, errCompressed
		}
		if !stream && z.Size > errorSize {
			return v, nil
		}
		if payload, err = expand(scratch, z); err != nil {
			return v, err
		}
		code, whole = z.OpCode, whole && len(payload) == z.Size
	}
	var doc []byte
	switch {
	case code == mongowire.OpMsg && len(payload) > 9:
		v.more = binary.LittleEndian.Uint32(payload)&mongowire.MoreToCome != 0
		doc = payload[5:]
	case code == mongowire.OpReply && len(payload) > 24:
		doc = payload[20:]
	default:
		return v, errMessage
	}
	if whole {
		v.read(doc)
	}
	return v, nil
}

// read reads the document of an answer. One that is malformed is no failure: it is
// the client's to complain.
func (v *verdict) read(doc []byte) {
	for key, value := range mongowire.Elements(doc) {
		switch string(key) {
		case "ok":
			if value.True() {
				*v = verdict{more: v.more}
				return
			}
			v.failed = true
		case "code":
			if n, ok := value.Number(); ok {
				v.code = int32(n)
			}
		case "errorLabels":
			v.labels(value.Array())
		case "baseBackoffMS":
			if ms, ok := value.Number(); ok && ms > 0 {
				v.base = time.Duration(math.Min(ms, 10_000) * float64(time.Millisecond))
			}
		}
	}
	if !v.failed { // there was no ok at all
		v.overloaded, v.retryable = false, false
	}
}

func (v *verdict) labels(array []byte) {
	for _, label := range mongowire.Elements(array) {
		switch string(label.Text()) {
		case "SystemOverloadedError":
			v.overloaded = true
		case "RetryableError":
			v.retryable = true
		}
	}
}
