package spillredis

import (
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/redisreply"
)

// A pipeline is the commands of one round trip.
type pipeline struct{ cmds []redis.Cmder }

// judge returns the error that describes the end of the round trip, given the first error of
// its commands. The answer to one command does not decide it, except a rejection: a server
// that rejects a command for lack of capacity has usually rejected all of them.
func (p *pipeline) judge(err error) error {
	if _, answered := errors.AsType[redis.Error](err); !answered && err != nil && !success(err) {
		return err // of the connection, so of all
	}
	executed, worst := redisreply.Worst(len(p.cmds), func(i int) (fault.Failure, error) {
		if err := p.cmds[i].Err(); !success(err) {
			return Classify(err), err
		}
		return fault.Failure{Unprocessed: p.cmds[i].Name() == "multi"}, nil
	})
	if worst != nil && executed {
		return &partly{error: worst}
	}
	return worst
}

// reset clears the errors of an attempt before the next one.
func (p *pipeline) reset() {
	for _, cmd := range p.cmds {
		cmd.SetErr(nil)
	}
}

// fail gives all commands that have no error the error err.
func (p *pipeline) fail(err error) {
	for _, cmd := range p.cmds {
		if cmd.Err() == nil {
			cmd.SetErr(err)
		}
	}
}

func (p *pipeline) noRetry() bool {
	for _, cmd := range p.cmds {
		if cmd.NoRetry() {
			return true
		}
	}
	return false
}

// partly is the error of a pipeline in which some commands failed and others were executed: it
// must not be sent again.
type partly struct{ error }

func (e *partly) Unwrap() error { return e.error }
