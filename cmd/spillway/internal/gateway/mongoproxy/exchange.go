package mongoproxy

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/mongowire"
)

// admit takes a command through the gates to the server, in as many attempts as the
// client's backpressure makes.
func (c *conn) admit(f frame, cmd *command) error {
	if c.mustProve() {
		c.listener.counts.exempt.Add(1)
		return c.bypass(f, cmd)
	}
	now := time.Now()
	t := trial{conn: c, command: cmd, call: c.call(now, cmd), start: now}
	for {
		a, no, err := t.attempt(f, now)
		if err != nil {
			t.abandon()
			t.report(c.blame(err), err)
			return err
		}
		if a.overloaded && t.again(f, a.verdict) {
			c.up.pass(a.frame)
			now = time.Now()
			continue
		}
		t.end(a.verdict, no)
		if no.Refused() {
			return c.refuse(f, cmd, no)
		}
		return c.deliver(f, cmd, a)
	}
}

// bypass sends a command on that no gate is asked about.
func (c *conn) bypass(f frame, cmd *command) error {
	var none ingress.Passage
	a, err := c.exchange(f, cmd, &none)
	if err != nil {
		return err
	}
	return c.deliver(f, cmd, a)
}

// answered is an answer that was not sent on yet, and what it says.
type answered struct {
	frame
	verdict
}

// exchange sends a command on and returns the first answer, if there is to be one.
func (c *conn) exchange(f frame, cmd *command, p *ingress.Passage) (a answered, err error) {
	if cmd.waits() || cmd.noReply() {
		p.Done(spillway.OutcomeAbandoned) // no work, or nobody hears of it
	}
	defer func() {
		if err != nil {
			p.Done(c.blame(err))
		}
	}()
	if f.rest > 0 {
		err = c.down.forward(f, c.up)
	} else if err = c.up.write(f.head); err != nil {
		err = otherSideError{err}
	}
	if err != nil {
		return a, requestError(err)
	}
	if cmd.noReply() {
		return a, nil
	}
	if a.frame, err = c.answer(f.RequestID, false); err != nil {
		return a, err
	}
	a.verdict, err = c.judge(a.frame, cmd)
	if err != nil {
		return a, because(Broken, err)
	}
	if a.overloaded {
		c.listener.counts.overloads.Add(1)
		c.place.trouble.Store(time.Now().UnixNano())
	}
	p.Done(a.outcome())
	return a, nil
}

// blame is the outcome of a command that was broken off: a failure of the server, unless
// the client has left or was the one that failed.
func (c *conn) blame(err error) spillway.Outcome {
	if r := reasonOf(err); c.ctx.Err() == nil && (r == HungUp || r == Broken) {
		return spillway.OutcomeFailed
	}
	return spillway.OutcomeAbandoned
}

// answer reads the beginning of an answer to the message id, or whatever comes after
// an answer that was not the last.
func (c *conn) answer(id int32, next bool) (f frame, err error) {
	if next { // nobody asks, so nothing is cut off where it ends
		c.streams.Store(true)
		defer c.streams.Store(false)
	}
	c.up.give()
	if err := c.up.wait(); err != nil {
		return f, serverError(err)
	}
	f, err = c.up.next(0, 0)
	switch {
	case errors.Is(err, errLength):
		return f, because(Broken, err)
	case err != nil:
		return f, serverError(err)
	case !next && f.ResponseTo != id:
		return f, endAs(Broken, "an answer to another message")
	}
	return f, nil
}

func (c *conn) judge(f frame, cmd *command) (verdict, error) {
	if f.OpCode != mongowire.OpCompressed {
		return judge(f, nil, false)
	}
	space := pages.Get().(*[pageSize]byte)
	defer pages.Put(space)
	return judge(f, space[:], cmd.flags&mongowire.ExhaustAllowed != 0)
}

// deliver sends the answer to the client, and those that follow it.
func (c *conn) deliver(f frame, cmd *command, a answered) error {
	if f.rest == 0 {
		c.down.pass(f)
	}
	if cmd.noReply() {
		return nil
	}
	for {
		if err := c.up.forward(a.frame, c.down); err != nil {
			return answerError(err)
		}
		if !a.more {
			return nil
		}
		var err error
		if a.frame, err = c.answer(0, true); err != nil {
			return err
		}
		if a.verdict, err = c.judge(a.frame, cmd); err != nil {
			return because(Broken, err)
		}
	}
}

// refuse answers a command in the place of the server.
func (c *conn) refuse(f frame, cmd *command, no ingress.Refusal) error {
	c.down.pass(f)
	if err := c.down.stream(f.rest, nil); err != nil {
		return clientError(err)
	}
	if cmd.noReply() {
		c.listener.counts.dropped.Add(1)
		return nil
	}
	doc := c.settings.refusals.of(no)
	var b []byte
	if cmd.legacy {
		b = mongowire.AppendReply(nil, 0, f.RequestID, doc)
	} else {
		b = mongowire.AppendMsg(nil, 0, f.RequestID, 0, doc)
	}
	return clientErrorOf(c.down.write(b))
}

// identify finds out what the configuration says of the client, whenever more is known
// of it or the configuration has changed.
func (c *conn) identify() {
	c.caller.Application = c.client.application
	for _, prefix := range c.settings.config.Parameters.RequestApplications {
		if strings.HasPrefix(c.client.driver, prefix) {
			c.caller.Application = c.client.driver // which is exempt as well
		}
	}
	c.known = c.classify("")
}

// call is what the policies are told of a command.
func (c *conn) call(now time.Time, cmd *command) spillway.Call {
	if c.settings.byDatabase {
		// A body that is long may have $db at its end, which is not here. Connections
		// are mostly used for one database.
		if cmd.database != nil && string(cmd.database) != c.database {
			c.database = string(cmd.database)
		}
		c.known = c.classify(c.database)
	}
	call := c.known
	call.Criticality = cmd.lowered(call.Criticality)
	if t := cmd.timeout(); t > 0 {
		call.Deadline = now.Add(t)
	}
	return call
}

// classify returns what the first class says that is meant.
func (c *conn) classify(database string) spillway.Call {
	call := spillway.Call{Key: c.settings.config.Name}
	for i := range c.settings.config.Classes {
		x := &c.settings.config.Classes[i]
		if !hasPrefix(x.Applications, c.client.application) || !has(x.Users, c.who.user) || !has(x.Databases, database) {
			continue
		}
		call.Criticality, _ = x.Criticality.Criticality() // Check has seen that it is one, or empty
		switch x.Customer {
		case "user":
			call.Customer = c.who.user
		case "application":
			call.Customer = c.client.application
		case "database":
			call.Customer = database
		}
		break
	}
	return call
}

// has reports whether a list holds a word, or is empty.
func has(list []string, word string) bool {
	return len(list) == 0 || slices.Contains(list, word)
}

func hasPrefix(list []string, word string) bool {
	for _, x := range list {
		if strings.HasPrefix(word, x) {
			return true
		}
	}
	return len(list) == 0
}
