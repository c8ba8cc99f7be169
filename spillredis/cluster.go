package spillredis

import (
	"context"
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/seed90641741/spillway/internal/redisreply"
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
// connection breaks, or if its first command was rejected. Before it does, it asks the first command whether
// that must not be repeated, and then follows redirections only. The hook of the node repeats the pipeline
// instead, as the retry strategy says.
type nodeCmd struct {
	redis.Cmder

	asked bool
	err   error
}

// onNode returns the commands of a pipeline. Transactions are executed as a whole or not at all.
// Of commands that go-redis prepares for a connection it needs to know the type.
func onNode(cmds []redis.Cmder) []redis.Cmder {
	if slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return cmd.Name() == "multi" || cmd.Name() == "himport" }) {
		return cmds
	}
	own := make([]redis.Cmder, len(cmds))
	for i, cmd := range cmds {
		own[i] = &nodeCmd{Cmder: original(cmd)}
	}
	return own
}

// original returns the command itself: one that was redirected is a nodeCmd already.
func original(cmd redis.Cmder) redis.Cmder {
	if c, ok := cmd.(*nodeCmd); ok {
		return c.Cmder
	}
	return cmd
}

// SetErr implements [redis.Cmder]: go-redis calls it with each answer.
func (c *nodeCmd) SetErr(err error) {
	c.err = err
	c.Cmder.SetErr(err)
}

// Err implements [redis.Cmder]. That of the command may wait for the end of the call.
func (c *nodeCmd) Err() error { return c.err }

// NoRetry implements [redis.Cmder].
func (c *nodeCmd) NoRetry() bool {
	c.asked = true
	return true
}

// withHook reports whether go-redis leaves it to the hook to repeat the commands: it would have repeated all of
// them, and follows no redirection of any. If it had no connection to send them on, it repeats them without
// asking, after the hook has returned.
func withHook(cmds []redis.Cmder) bool {
	first, ok := cmds[0].(*nodeCmd)
	return ok && first.asked && !slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool {
		answer, ok := errors.AsType[redis.Error](cmd.Err())
		return ok && redisreply.Redirect(answer.Error())
	})
}
