package spillredis

import (
	"context"
	"errors"
	"net"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/redisreply"
)

// A hook makes the commands to one address pass the policies.
type hook struct {
	pool    *egress.Pool
	address string
	redial  *redialer
}

var _ redis.Hook = (*hook)(nil)

// under marks the context of a command that has passed the policies. go-redis runs the
// hooks for the handshake of a new connection, too, inside the command that needs the
// connection: that is part of the command's attempt.
type under struct{}

// DialHook implements [redis.Hook]. A dial is part of the attempt that needs the connection.
func (h *hook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		return h.redial.dial(func() (net.Conn, error) { return next(ctx, network, address) }, ctx.Done())
	}
}

// ProcessHook implements [redis.Hook] for single commands.
func (h *hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if ctx.Value(under{}) != nil {
			return next(ctx, cmd)
		}
		name := cmd.Name()
		call := spillway.Call{Key: name, Kind: spillway.KindWrite, LongPoll: waits(cmd)}
		if redisreply.Reads(name) {
			call.Kind = spillway.KindRead
		}
		again := !cmd.NoRetry()
		return h.do(ctx, call, again, func(ctx context.Context, retry bool) error {
			if retry {
				cmd.SetErr(nil)
			}
			return next(ctx, cmd)
		})
	}
}

// ProcessPipelineHook implements [redis.Hook] for pipelines and transactions. One is one
// request: it takes one place in flight and one round trip.
func (h *hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if ctx.Value(under{}) != nil {
			return next(ctx, cmds)
		}
		call := spillway.Call{Key: "pipeline", Kind: kindOf(cmds), LongPoll: anyWaits(cmds)}
		p := newPipeline(cmds, ctx.Value(clustered{}) != nil)
		err := h.do(ctx, call, !p.final, func(ctx context.Context, retry bool) error {
			if retry {
				p.reset()
			}
			return p.judge(next(ctx, p.cmds))
		})
		if fault.Of(err).Unsent {
			p.fail(err)
		}
		return err
	}
}

// do makes one call to the server. again says whether it may be repeated at all.
func (h *hook) do(ctx context.Context, call spillway.Call, again bool, send func(ctx context.Context, retry bool) error) error {
	if ctx.Value(idempotentKey{}) != nil {
		call.Idempotent = true
	}
	inside := context.WithValue(ctx, under{}, true)
	var answer error // one that is a success to the policies
	err := h.pool.For(h.address).Do(inside, call, func(ctx context.Context, a *egress.Attempt) error {
		if call.LongPoll {
			// From here on the command waits for other clients, which is no load.
			a.GiveBack()
		}
		answer = send(ctx, a.Number > 0)
		if success(answer) {
			return nil
		}
		e := describe(ctx, answer)
		if call.LongPoll && e.failure.Timeout && ctx.Err() != nil {
			e.failure = fault.Failure{Canceled: true} // the caller stops waiting
		}
		if !again {
			e.failure.Safety = fault.RetryUnsafe
		}
		return e
	})
	if err == nil {
		return answer
	}
	return plain(ctx, err)
}

// plain returns err as callers of go-redis expect it: the error of the command itself
// where nothing was added to it. Inside a cluster client it is one that is not repeated.
func plain(ctx context.Context, err error) error {
	if e, ok := err.(*classified); ok { //nolint:errorlint // only where err is nothing else
		err = e.error
	}
	if e, ok := err.(*partly); ok { //nolint:errorlint // likewise
		err = e.error
	}
	if ctx.Value(clustered{}) == nil {
		return err
	}
	if answer, ok := errors.AsType[redis.Error](err); ok && redisreply.Redirect(answer.Error()) {
		return answer
	}
	return &final{err: err}
}

// waits reports whether cmd may wait at the server until another client does something.
func waits(cmd redis.Cmder) bool {
	args := cmd.Args()
	return redisreply.Waits(cmd.Name(), len(args), func(i int) string {
		word, _ := args[i].(string)
		return word
	})
}

// anyWaits reports whether one of the commands of a pipeline may wait. In a transaction none does.
func anyWaits(cmds []redis.Cmder) bool {
	return slices.ContainsFunc(cmds, waits) && !slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return cmd.Name() == "multi" })
}

// kindOf returns Read if all commands only read.
func kindOf(cmds []redis.Cmder) spillway.Kind {
	for _, cmd := range cmds {
		if !redisreply.Reads(cmd.Name()) {
			return spillway.KindWrite
		}
	}
	return spillway.KindRead
}
