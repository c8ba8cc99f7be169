package spillredis

import (
	"context"
	"errors"
	"net"

	"github.com/redis/go-redis/v9"

	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/redisreply"
)

// Classify returns what it means that a command ended with err. The package documentation
// has the rules. Commands of an installed client are classified already.
func Classify(err error) fault.Failure {
	if answer, ok := errors.AsType[redis.Error](err); ok {
		return redisreply.Meaning(answer.Error())
	}
	f := fault.Of(err)
	switch {
	case f.Unsent, f.Canceled, f.Overload:
		return f
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted), errors.Is(err, redis.ErrClosed):
		return fault.Failure{Unsent: true} // limits of this process, which say nothing of the server
	case f.Unprocessed && !timedOut(err):
		// There is no server, which is no overload: nothing waits there.
		return fault.Failure{Safety: fault.RetrySafe, Party: fault.Server, Unanswered: true}
	}
	return f
}

// waited reports whether the deadline of ctx has passed while a command waited for a connection of go-redis' pool, or for a
// retry: go-redis returns the error of the context then. An answer that does not come is a timeout of the connection.
func waited(ctx context.Context, err error) bool {
	_, network := errors.AsType[*net.OpError](err)
	return !network && errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil
}

// timedOut reports whether err is that of a wait without an answer. A socket whose queue of
// connections is full (EAGAIN) counts as one, as in package syscall.
func timedOut(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}

// success reports whether err is an answer that the command asked for: there is no such
// key, or a key has changed since WATCH.
func success(err error) bool {
	return err == nil || errors.Is(err, redis.Nil) || errors.Is(err, redis.TxFailedErr)
}

// classified is an error with its meaning for package egress.
type classified struct {
	error
	failure fault.Failure
}

func (e *classified) Unwrap() error          { return e.error }
func (e *classified) Failure() fault.Failure { return e.failure }

// describe returns err with its meaning for a command that was sent under ctx.
func describe(ctx context.Context, err error) *classified {
	f := Classify(err)
	_, answered := errors.AsType[redis.Error](err)
	_, some := errors.AsType[*partly](err)
	switch {
	case f.Unsent, answered:
	case waited(ctx, err):
		f = fault.Failure{Unsent: true, Safety: fault.RetryUnsafe, Timeout: true}
	case errors.Is(ctx.Err(), context.Canceled):
		f = fault.Failure{Canceled: true}
	case ctx.Err() != nil:
		f = fault.Failure{Timeout: true, Unanswered: true}
	}
	if some {
		f.Safety = fault.RetryUnsafe
	}
	return &classified{error: err, failure: f}
}
