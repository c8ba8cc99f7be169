package mongoproxy

import (
	"errors"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/mongoproxy/wire"
	"github.com/seed90641741/spillway/fault"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/retry"
)

// patient reports whether the proxy retries commands on behalf of this client.
func (c *conn) patient() bool {
	s := c.settings
	return s.strategy != nil && c.greeted && (s.config.Retry.Always || !c.client.Backpressure)
}

// A trial has the attempts of one command.
type trial struct {
	conn    *conn
	command *wire.Command
	call    spillway.Call
	start   time.Time
	token   retry.Token
	begun   bool  // with the strategy
	let     bool  // in, once at least
	why     error // it is not sent again

	// For its account.
	sent    bool              // to the server, once at least
	left    bool              // the connection ended before the last attempt did
	verdict wire.Verdict      // of the last attempt
	no      ingress.Rejection // of the last attempt, by a gate
}

// attempt sends the command through the gates to the server. A rejection by a gate counts like
// one by the server.
func (t *trial) attempt(f wire.Frame, now time.Time) (a answered, no ingress.Rejection, err error) {
	c := t.conn
	l := c.listener
	if !t.command.Waits() {
		l.counts.working.Enter() // always true, as it never retires
		defer l.counts.working.Leave()
	}
	var p ingress.Slot
	call := t.call // each attempt without a level draws its own
	no = p.EnterAt(c.ctx, l.gate, now, &call, &c.caller)
	switch {
	case c.ctx.Err() != nil:
		p.Done(spillway.OutcomeAbandoned)
		return a, no, because(Left, c.ctx.Err())
	case no.Rejected():
		a.Verdict = wire.Verdict{Failed: true, Overloaded: true, Retryable: c.settings.config.AllowsRetries() && !no.DontRetry}
		return a, no, nil
	}
	t.admitted()
	t.sent = true
	a, err = c.exchange(f, t.command, &p, l.tuning.Load())
	return a, no, err
}

// admitted counts the command as admitted: to the server, or to its next attempt.
func (t *trial) admitted() {
	if !t.let {
		t.let = true
		t.conn.listener.counts.admitted.Add(1)
	}
}

// again decides whether a rejected command is retried, and waits for the backoff.
func (t *trial) again(f wire.Frame, v wire.Verdict) bool {
	c := t.conn
	if !c.patient() || f.Rest > 0 || t.command.NoReply() || !t.command.Resendable() {
		return false
	}
	s := c.settings.strategy
	t.begin()
	next, err := s.Refresh(time.Now(), t.token, v.Failure())
	if err != nil {
		t.begun = false
		t.why = err
		return false
	}
	t.token = next
	wait := time.NewTimer(next.Delay())
	defer wait.Stop()
	began := time.Now()
	select {
	case <-wait.C:
	case <-c.ctx.Done():
	}
	c.listener.counts.backoff.Add(int64(time.Since(began)))
	if c.ctx.Err() != nil {
		return false
	}
	t.admitted()
	t.call.Attempt++
	c.listener.counts.retries.Add(1)
	if d := t.call.Deadline; !d.IsZero() {
		t.command.Shorten(f, time.Until(d))
	}
	return true
}

// begin reports the command to the strategy, once.
func (t *trial) begin() {
	c := t.conn
	if !t.begun {
		t.begun = true
		t.call.Kind = t.command.Access()
		t.token = c.settings.strategy.Begin(t.call)
	}
	t.token.Attempt().Use(c.place.Address)
}

func (t *trial) end(v wire.Verdict, no ingress.Rejection) {
	t.settle(v)
	t.verdict, t.no = v, no
	switch c := t.conn; {
	case c.ctx.Err() != nil:
		t.left = true
		t.report(spillway.OutcomeAbandoned, c.ctx.Err())
	case no.Rejected():
		t.report(spillway.OutcomeNotStarted, no.Err)
	case t.why != nil:
		t.report(v.Fate(), retry.WrapError(errDeclined, t.why, int(t.call.Attempt)+1))
	default:
		t.report(v.Fate(), nil)
	}
}

var errDeclined = errors.New("the server is overloaded")

// settle reports the end to the strategy, if the outcome matters to it.
func (t *trial) settle(v wire.Verdict) {
	c := t.conn
	if !c.patient() || v.Overloaded {
		t.abandon()
		return
	}
	if !t.begun && v.Failed || t.command.NoReply() {
		return // nothing is earned
	}
	t.begin()
	t.begun = false
	if v.Failed {
		_ = c.settings.strategy.Release(t.token, v.Failure()) // it was not used before
		return
	}
	_ = c.settings.strategy.Succeed(t.token) // as above
	if t.call.Attempt > 0 {
		c.listener.counts.rescued.Add(1)
	}
}

func (t *trial) abandon() {
	if t.begun {
		t.begun = false
		_ = t.conn.settings.strategy.Release(t.token, fault.Failure{Canceled: true}) // it was not used before
	}
}

// report sends the observer one event for the command with all its attempts: NotStarted with
// the rejection if a gate rejected it. A command whose client disconnected before it was
// admitted was never offered.
func (t *trial) report(o spillway.Outcome, err error) {
	observer := t.conn.listener.proxy.with.Observer
	if observer == nil || !t.let && !errors.Is(err, spillway.ErrRejected) {
		return
	}
	e := spillway.Event{Time: t.start, Call: t.call, Policy: "retry", Outcome: o, Err: err}
	if !t.command.Waits() && !t.command.NoReply() { // whose time says nothing
		e.Latency = max(1, time.Since(t.start))
	}
	observer.Observe(e)
}
