package spillredis

import (
	"context"
	"errors"
	"slices"

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

// A nodeCmd is a command of a pipeline for one node. go-redis repeats such a pipeline as a whole if its
// connection breaks, or if its first command was rejected. Before it does, it asks the commands whether one
// of them must not be repeated, and then follows redirections only.
type nodeCmd struct {
	redis.Cmder

	all      []redis.Cmder // the pipeline, for its first command
	answered bool
	err      error
}

// onNode returns the commands of a pipeline with writes. Transactions are executed as a whole or not at all.
// Of commands that go-redis prepares for a connection it needs to know the type.
func onNode(cmds []redis.Cmder) []redis.Cmder {
	if slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return cmd.Name() == "multi" || cmd.Name() == "himport" }) {
		return cmds
	}
	own := make([]redis.Cmder, len(cmds))
	for i, cmd := range cmds {
		if c, ok := cmd.(*nodeCmd); ok { // it was redirected
			cmd = c.Cmder
		}
		own[i] = &nodeCmd{Cmder: cmd}
	}
	own[0].(*nodeCmd).all = own //nolint:forcetypeassert // as made above
	return own
}

// SetErr implements [redis.Cmder]: go-redis calls it with each answer.
func (c *nodeCmd) SetErr(err error) {
	c.answered, c.err = true, err
	c.Cmder.SetErr(err)
}

// Err implements [redis.Cmder]. That of the command may wait for the end of the call.
func (c *nodeCmd) Err() error { return c.err }

// NoRetry implements [redis.Cmder].
func (c *nodeCmd) NoRetry() bool {
	return c.Cmder.NoRetry() || slices.ContainsFunc(c.all, func(cmd redis.Cmder) bool { return cmd.(*nodeCmd).executed() }) //nolint:forcetypeassert // as made
}

// executed reports whether the command may have been executed, or will be where it was redirected to.
func (c *nodeCmd) executed() bool {
	_, rejected := errors.AsType[redis.Error](c.err)
	return !c.answered || success(c.err) || !rejected || !Classify(c.err).Retryable(false)
}
