package spillrueidis

import (
	"context"
	"errors"
	"net"
	"os"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/redisreply"
)

// Classify returns what it means that a command ended with err. The package documentation
// has the rules. Commands of a [Client] are classified already.
func Classify(err error) fault.Failure {
	if answer, ok := rueidis.IsRedisErr(err); ok {
		return redisreply.Meaning(answer.Error())
	}
	switch {
	case errors.Is(err, rueidis.ErrNoCache): // the text begins with an answer to the handshake
		return redisreply.Meaning(err.Error())
	case errors.Is(err, rueidis.ErrClosing), errors.Is(err, rueidis.ErrDedicatedClientRecycled):
		return fault.Failure{Unsent: true} // the caller has closed it
	case errors.Is(err, rueidis.ErrNoSlot):
		return fault.Failure{Safety: fault.RetrySafe, Party: fault.Server} // as CLUSTERDOWN
	}
	f := fault.Of(err)
	if f.Unprocessed && !f.Overload && !timedOut(err) {
		// There is no server, which is no overload: nothing waits there.
		return fault.Failure{Safety: fault.RetrySafe, Party: fault.Server, Unanswered: true}
	}
	return f
}

// timedOut reports whether err is that of a wait without an answer. A socket whose queue of
// connections is full (EAGAIN) counts as one, as in package syscall.
func timedOut(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}

// success reports whether err is an answer that the command asked for: there is no such key.
func success(err error) bool { return err == nil || rueidis.IsRedisNil(err) }

// classified is an error with its meaning for package egress.
type classified struct {
	error
	failure fault.Failure
}

func (e *classified) Unwrap() error          { return e.error }
func (e *classified) Failure() fault.Failure { return e.failure }

// describe returns err with its meaning for commands that were sent under ctx.
func describe(ctx context.Context, err error) *classified {
	some, executed := err.(*partly) //nolint:errorlint // judge returns it so
	if executed {
		err = some.error
	}
	f := Classify(err)
	_, answered := rueidis.IsRedisErr(err)
	switch {
	case f.Unsent, answered, errors.Is(err, rueidis.ErrNoCache):
	case errors.Is(ctx.Err(), context.Canceled):
		f = fault.Failure{Canceled: true}
	case expired(ctx):
		f = fault.Failure{Timeout: true, Unanswered: true}
	case anotherLeft(ctx, err):
		f = fault.Failure{Safety: fault.RetrySafe}
	}
	if executed {
		f.Safety = fault.RetryUnsafe
	}
	return &classified{error: err, failure: f}
}

// maxOthers is how many times in a row a command is sent again because another caller left. So
// many callers that cannot wait for a connection are an outage, and then the budget pays.
const maxOthers = 10

// anotherLeft reports whether err is the end of the context of another caller, which was opening
// the connection or fetching the value for both. This command was not sent.
func anotherLeft(ctx context.Context, err error) bool {
	return (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) && !expired(ctx)
}

// late is the error of a connection that was not open in time.
type late struct{ error }

var errLate = &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}

func (late) Unwrap() error { return errLate }

// expired reports whether the deadline of ctx has passed. A connection with the same deadline
// may notice it before ctx does.
func expired(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// errCached ends a command without a word to the policies: its value was in the cache of this
// process, and no server did anything for it.
var errCached = &classified{
	error:   errors.New("spillrueidis: served from the cache of the client"),
	failure: fault.Failure{Unsent: true, Canceled: true}, // and no reason to fail a request
}
