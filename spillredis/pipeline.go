package spillredis

import (
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/internal/redisreply"
)

// A pipeline is the commands of one round trip.
type pipeline struct {
	cmds    []redis.Cmder
	cluster bool
	final   bool // a command must not be sent again
}

func newPipeline(cmds []redis.Cmder, cluster bool) *pipeline {
	p := &pipeline{cmds: cmds, cluster: cluster}
	p.final = slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return original(cmd).NoRetry() })
	if cluster {
		p.cmds = onNode(cmds)
	}
	return p
}

// judge returns the error that describes the end of the round trip, given the first error of
// its commands. The answer to one command does not decide it, except a rejection: a server
// that rejects a command for lack of capacity has usually rejected all of them.
func (p *pipeline) judge(err error) error {
	executed := false
	if _, answered := errors.AsType[redis.Error](err); answered || success(err) { // else it is of the connection, so of all
		executed, err = redisreply.Worst(len(p.cmds), func(i int) (fault.Failure, error) {
			if err := p.cmds[i].Err(); !success(err) {
				return Classify(err), err
			}
			return fault.Failure{Unprocessed: p.cmds[i].Name() == "multi"}, nil
		})
	}
	if err != nil && (executed || p.cluster && !withHook(p.cmds)) {
		return &partly{error: err}
	}
	return err
}

// reset clears what an attempt has left before the next one.
func (p *pipeline) reset() {
	for _, cmd := range p.cmds {
		cmd.SetErr(nil)
		if c, ok := cmd.(*nodeCmd); ok {
			c.asked = false
		}
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

// partly is the error of a pipeline in which some commands failed and others were executed, or
// that go-redis repeats: the hook must not send it again.
type partly struct{ error }

func (e *partly) Unwrap() error { return e.error }
