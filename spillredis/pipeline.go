package spillredis

import (
	"errors"

	"github.com/redis/go-redis/v9"
)

// A pipeline is the commands of one round trip.
type pipeline struct{ cmds []redis.Cmder }

// judge returns the error that describes the end of the round trip, given the first error of
// its commands. The answer to one command does not decide it, except a rejection: a server
// that rejects a command for lack of capacity has usually rejected all of them.
func (p *pipeline) judge(err error) error {
	if success(err) && !p.anyRefused() {
		return nil
	}
	if _, answered := errors.AsType[redis.Error](err); !answered && err != nil {
		return err // of the connection, so of all
	}
	first, all := error(nil), true
	for _, cmd := range p.cmds {
		if e := cmd.Err(); e != nil && Classify(e).Overload {
			first = e
		} else {
			all = false
		}
	}
	switch {
	case first == nil:
		return err
	case all:
		return first
	}
	return &partly{error: first}
}

func (p *pipeline) anyRefused() bool {
	for _, cmd := range p.cmds {
		if e := cmd.Err(); e != nil && Classify(e).Overload {
			return true
		}
	}
	return false
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

// partly is the error of a pipeline in which some commands were rejected for lack of capacity
// and others were executed: it must not be sent again.
type partly struct{ error }

func (e *partly) Unwrap() error { return e.error }
