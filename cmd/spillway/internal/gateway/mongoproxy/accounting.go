package mongoproxy

import (
	"context"
	"errors"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/mongoproxy/wire"
	"github.com/seed90641741/spillway/internal/admin/accounts"
)

// request handles a command that neither is a hello nor authenticates, and counts it in exactly
// one account.
func (c *conn) request(f wire.Frame, cmd *wire.Command) error {
	l := c.listener
	l.proxy.with.Accounts.Begin()
	c.source.set(cmd, c.who.user)
	t := trial{conn: c, command: cmd, call: c.known, start: time.Now()}
	err := t.run(f)
	end := t.account(err)
	if end.Account == accounts.Rejected && end.Reason >= accounts.MaxRequests { // no policy reported it
		l.proxy.with.Decisions.Reject(t.start, end.Reason, t.call, &c.source, 0, 0, "")
	}
	l.proxy.with.Accounts.End(end)
	return err
}

// run sends the command to the server: through the gates, unless it comes before authentication.
func (t *trial) run(f wire.Frame) error {
	c := t.conn
	if err := c.guard(f, t.command); err != nil {
		return err
	}
	c.listener.counts.commands.Add(1)
	if err := c.reach(); err != nil {
		return err
	}
	c.meet(t.command)
	if c.mustProve() {
		c.listener.counts.exempt.Add(1)
		return t.bypass(f)
	}
	return t.admit(f)
}

// account returns how the command ended. err is why its connection ends, nil if it does not.
func (t *trial) account(err error) accounts.End {
	e := accounts.End{Criticality: t.call.Criticality, Retried: t.call.Attempt > 0}
	outcome := t.verdict.Fate()
	switch {
	case t.left, err != nil && outcome == spillway.OutcomeServed && !t.no.Rejected():
		e.Account, e.Reason = t.interrupted(err)
	case t.no.Rejected():
		e.Account, e.Reason = rejectedFor(t.no.Err)
	default:
		e.Account = accounts.Upstream(outcome)
	}
	return e
}

// rejectedFor returns the account of a command that the gates did not let in.
func rejectedFor(err error) (accounts.Account, accounts.Reason) {
	if r, ok := errors.AsType[*spillway.RejectedError](err); ok {
		return accounts.Rejected, accounts.Reason(r.Reason)
	}
	if errors.Is(err, context.DeadlineExceeded) { // maxTimeMS has passed in a queue
		return accounts.Late, 0
	}
	return accounts.GoneWaiting, 0
}

// interrupted returns the account of a command whose connection ended first.
func (t *trial) interrupted(err error) (accounts.Account, accounts.Reason) {
	reason := reasonOf(err)
	if why := t.conn.killed.Load(); why != nil {
		reason = why.reason
	}
	switch reason {
	case Malformed, Unauthenticated:
		return accounts.Rejected, accounts.BadRequest
	case HungUp, Broken, Unreachable:
		return accounts.Failed, 0
	case Drained:
		if t.sent {
			return accounts.Failed, 0
		}
		return accounts.Rejected, accounts.Draining
	default:
		if t.sent {
			return accounts.GoneSent, 0
		}
		return accounts.GoneWaiting, 0
	}
}
