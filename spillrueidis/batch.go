package spillrueidis

import (
	"github.com/redis/rueidis"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/redisreply"
)

// judge returns the error that describes the end of commands that were sent together, or nil.
// An answer to one of them does not decide it, except a rejection: a server that rejects a
// command for lack of capacity has usually rejected all of them.
func judge(answers []rueidis.RedisResult) error {
	executed, worst := redisreply.Worst(len(answers), func(i int) (fault.Failure, error) {
		err := answers[i].Error()
		if success(err) {
			return fault.Failure{Unprocessed: queued(answers[i])}, nil
		}
		return Classify(err), err
	})
	if worst != nil && executed {
		return &partly{error: worst}
	}
	return worst
}

// queued reports whether a command of a transaction has not been executed yet. The answer to
// MULTI itself is that of many commands, so a transaction is repeated only if MULTI has failed.
func queued(r rueidis.RedisResult) bool {
	text, err := r.ToString()
	return err == nil && text == "QUEUED"
}

// partly is the error of a batch in which some commands failed and others were executed: the
// batch must not be sent again.
type partly struct{ error }

func (e *partly) Unwrap() error { return e.error }

// callOf describes commands that are sent together as one call.
func callOf(cmds []rueidis.Completed) spillway.Call {
	call := spillway.Call{Key: "pipeline", Kind: spillway.KindRead, Idempotent: true}
	if len(cmds) == 1 {
		call.Key = cmds[0].Commands()[0]
	}
	for i := range cmds {
		if !cmds[i].IsReadOnly() {
			call.Kind = spillway.KindWrite
		}
		call.Idempotent = call.Idempotent && cmds[i].IsRetryable()
		call.LongPoll = call.LongPoll || cmds[i].IsBlock()
	}
	return call
}

// fail returns n results with an error.
func fail(n int, err error) []rueidis.RedisResult {
	all := make([]rueidis.RedisResult, n)
	for i := range all {
		all[i] = rueidis.NewErrorResult(err)
	}
	return all
}
