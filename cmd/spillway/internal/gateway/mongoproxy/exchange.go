package mongoproxy

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/mongoproxy/wire"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/mongowire"
)

// admit sends a command through the gates to the server, with retries on behalf of the client.
func (t *trial) admit(f wire.Frame) error {
	c, now := t.conn, t.start
	t.call = c.call(now, t.command)
	for {
		a, no, err := t.attempt(f, now)
		if err != nil {
			t.abandon()
			t.report(c.blame(err), err)
			return err
		}
		if a.Overloaded && t.again(f, a.Verdict) {
			c.up.Pass(a.Frame)
			now = time.Now()
			continue
		}
		t.end(a.Verdict, no)
		if no.Rejected() {
			return c.reject(f, t.command, no)
		}
		return c.deliver(f, t.command, a)
	}
}

// bypass sends a command on without asking a gate.
func (t *trial) bypass(f wire.Frame) error {
	t.sent = true
	a, err := t.conn.exchange(f, t.command, new(ingress.Slot), nil)
	if err != nil {
		return err
	}
	t.verdict = a.Verdict
	return t.conn.deliver(f, t.command, a)
}

// answered is an answer that was not forwarded yet, with its verdict.
type answered struct {
	wire.Frame
	wire.Verdict
}

// exchange forwards a command and returns the first answer, if the command has one. The tuner
// measures it, unless that is nil.
func (c *conn) exchange(f wire.Frame, cmd *wire.Command, p *ingress.Slot, by *tuning) (a answered, err error) {
	timed := !cmd.Waits() && !cmd.NoReply()
	if timed {
		by.begin()
	} else {
		p.Done(spillway.OutcomeAbandoned) // it does no work, or expects no answer
	}
	x, began := c.place, time.Now()
	x.Begin()
	defer func() {
		o := a.Fate()
		if err != nil {
			o = c.blame(err)
			p.Done(o)
		}
		x.End(began, o, err == nil && timed)
		if timed {
			by.end(time.Since(began), a, err)
		}
	}()
	if f.Rest > 0 {
		err = c.down.Forward(f, c.up)
	} else {
		err = c.up.Write(f.Head)
	}
	if err != nil {
		return a, err
	}
	if cmd.NoReply() {
		return a, nil
	}
	if a.Frame, err = c.answer(f.RequestID, false); err != nil {
		return a, err
	}
	if time.Since(began) >= patience && wire.HungUp(c.socket) {
		return a, because(Left, errLeft)
	}
	a.Verdict, err = c.judge(a.Frame, cmd)
	if err != nil {
		return a, because(Broken, err)
	}
	c.follow(&a, cmd)
	if a.Overloaded {
		c.listener.counts.overloads.Add(1)
	}
	p.Done(a.Outcome())
	return a, nil
}

// patience is how long a client waits in any case: the answers that take longer are looked at with a system call. A client that has left was
// not answered, so that the limit must not learn that commands may take this long.
const patience = 10 * time.Millisecond

var errLeft = errors.New("the client has left while it waited")

// blame returns the outcome of a command that was interrupted: a server failure, unless the
// client disconnected or failed.
func (c *conn) blame(err error) spillway.Outcome {
	if r := reasonOf(err); c.ctx.Err() == nil && (r == HungUp || r == Broken) {
		return spillway.OutcomeFailed
	}
	return spillway.OutcomeAbandoned
}

// answer reads the beginning of the answer to the message id, or of the next streamed answer.
func (c *conn) answer(id int32, next bool) (f wire.Frame, err error) {
	if next { // no command is in flight, so nothing is cut off where it ends
		c.streams.Store(true)
		defer c.streams.Store(false)
	}
	c.up.Give()
	if err := c.up.Wait(); err != nil {
		return f, serverError(err)
	}
	if f, err = c.up.Next(0, 0); err != nil {
		return f, because(Broken, err)
	}
	if !next && f.ResponseTo != id {
		return f, endAs(Broken, "an answer to another message")
	}
	return f, nil
}

func (c *conn) judge(f wire.Frame, cmd *wire.Command) (wire.Verdict, error) {
	if f.OpCode != mongowire.OpCompressed {
		return wire.Judge(f, nil, false)
	}
	space := wire.GetPage()
	defer wire.PutPage(space)
	return wire.Judge(f, space[:], cmd.Flags&mongowire.ExhaustAllowed != 0)
}

// deliver sends the answer to the client, and the streamed answers after it.
func (c *conn) deliver(f wire.Frame, cmd *wire.Command, a answered) error {
	if f.Rest == 0 {
		c.down.Pass(f)
	}
	if cmd.NoReply() {
		return nil
	}
	for {
		if err := c.up.Forward(a.Frame, c.down); err != nil {
			return err
		}
		if !a.More {
			return nil
		}
		var err error
		if a.Frame, err = c.answer(0, true); err != nil {
			return err
		}
		if a.Verdict, err = c.judge(a.Frame, cmd); err != nil {
			return because(Broken, err)
		}
	}
}

// reject answers a rejected command instead of the server.
func (c *conn) reject(f wire.Frame, cmd *wire.Command, no ingress.Rejection) error {
	c.down.Pass(f)
	if err := c.down.Stream(f.Rest, nil); err != nil {
		return err
	}
	if cmd.NoReply() {
		c.listener.counts.dropped.Add(1)
		return nil
	}
	return c.reply(cmd.Legacy, 0, f.RequestID, 0, c.settings.rejections.of(no))
}

// reply answers the message to with a document. The answer to an OP_QUERY, which is legacy, has no flags.
func (c *conn) reply(legacy bool, id, to int32, flags uint32, doc []byte) error {
	if legacy {
		return c.down.Write(mongowire.AppendReply(nil, id, to, doc))
	}
	return c.down.Write(mongowire.AppendMsg(nil, id, to, flags, doc))
}

// identify looks the client up in the configuration, whenever more is known about the client
// or the configuration has changed.
func (c *conn) identify() {
	c.caller.Application = c.client.Application
	for _, prefix := range c.settings.config.Parameters.RequestApplications {
		if strings.HasPrefix(c.client.Driver, prefix) {
			c.caller.Application = c.client.Driver // which is exempt as well
		}
	}
	c.known = c.classify("")
}

func (c *conn) call(now time.Time, cmd *wire.Command) spillway.Call {
	if c.settings.byDatabase {
		// A long body may have $db at its end, outside of the buffer. Most connections use one
		// database.
		if cmd.Database != nil && string(cmd.Database) != c.database {
			c.database = string(cmd.Database)
		}
		c.known = c.classify(c.database)
	}
	call := c.known
	call.Criticality = cmd.Lowered(call.Criticality)
	if t := cmd.Timeout(); t > 0 {
		call.Deadline = now.Add(t)
	}
	return call
}

// classify returns the call with the settings of the first class that matches.
func (c *conn) classify(database string) spillway.Call {
	call := spillway.Call{Key: c.settings.config.Name}
	for i := range c.settings.config.Classes {
		x := &c.settings.config.Classes[i]
		if !hasPrefix(x.Applications, c.client.Application) || !has(x.Users, c.who.user) || !has(x.Databases, database) {
			continue
		}
		call.Criticality, _ = x.Criticality.Criticality() // Check has seen that it is one, or empty
		switch x.Customer {
		case "user":
			call.Customer = c.who.user
		case "application":
			call.Customer = c.client.Application
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
	return len(list) == 0 || slices.ContainsFunc(list, func(prefix string) bool { return strings.HasPrefix(word, prefix) })
}
