package spillredis

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// A cluster is the hook of a cluster client itself, around what go-redis does to find the
// right node. The hooks of the nodes make the attempts and the retries. What they return
// in the end must not be repeated by go-redis on another node, unless it is a redirection.
// So they hide it from go-redis, and this hook reveals it.
type cluster struct{}

var _ redis.Hook = cluster{}

// clustered marks the context of a command of a cluster client.
type clustered struct{}

// DialHook does not change dialing.
func (cluster) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements [redis.Hook].
func (cluster) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return reveal(next(context.WithValue(ctx, clustered{}, true), cmd))
	}
}

// ProcessPipelineHook implements [redis.Hook].
func (cluster) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(context.WithValue(ctx, clustered{}, true), cmds)
		for _, cmd := range cmds {
			if e := cmd.Err(); e != nil {
				cmd.SetErr(reveal(e))
			}
		}
		return reveal(err)
	}
}

// final is an error that go-redis does not recognize.
type final struct{ err error }

func (e *final) Error() string { return "spillredis: " + e.err.Error() }

// reveal returns the error that was hidden from go-redis.
func reveal(err error) error {
	if e, ok := errors.AsType[*final](err); ok {
		return e.err
	}
	return err
}
