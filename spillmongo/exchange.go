package spillmongo

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/retry"
)

// An exchange is one command and its answer, in as many attempts as it takes.
type exchange struct {
	retrier *Retrier
	call    *call // nil while there was no need of it

	wm    []byte    // as it was sent first
	id    sessionID // of the session in it, as the driver knows it, if the server knows another
	lost  error     // of writing it
	start time.Time // if somebody wants to know
}

// begin begins the call, unless the search for a connection has.
func (x *exchange) begin(s retry.Strategy, kind spillway.Kind, deadline time.Time) {
	if !x.call.begun() {
		x.call = x.retrier.begin(s, kind, deadline)
	}
}

// abandon ends a call that was never sent.
func (x *exchange) abandon() {
	if x.call.begun() {
		x.call.giveBack()
	}
}

// Write sends the first attempt.
func (c *conn) Write(ctx context.Context, wm []byte) error {
	c.lost, c.final, c.settled, c.start = nil, false, false, c.retrier.clock()
	err := c.reenter(ctx, false, nil) // the last command may have left it without one
	if err != nil {
		return err
	}
	c.wm, c.id = wm, sessionID{}
	if c.retrier.sessions.some.Load() > 0 {
		c.rewrite(ctx)
	}
	if c.retrier.labels {
		c.label(ctx)
	}
	wm = c.wm
	if err = c.inner.Write(ctx, wm); err == nil {
		return nil
	}
	if _, ok := c.command(); !ok {
		return err // nobody will read
	}
	c.lost = err
	return nil
}

// rewrite puts the session that the server knows into the message.
func (c *conn) rewrite(ctx context.Context) []byte {
	wm, err := plain(c.wm)
	if err != nil {
		return c.wm
	}
	m, err := parseMessage(wm)
	if err != nil {
		return c.wm
	}
	id, changed := c.retrier.sessions.rewrite(ctx, m.body)
	if !changed {
		return c.wm
	}
	if opcode(c.wm) == opCompressed {
		if wm, err = c.face.CompressWireMessage(wm, nil); err != nil {
			return c.wm
		}
	}
	c.wm, c.id = wm, id
	return wm
}

// session returns the ID by which the driver knows the session of the command.
func (x *exchange) session(cmd *command) (id sessionID, ok bool) {
	if x.id != (sessionID{}) {
		return x.id, true
	}
	wire := lsid(cmd.body)
	if wire == nil {
		return id, false
	}
	return sessionID(wire), true
}

// Read returns the answer to what was written, of the last attempt if there were
// several.
func (c *conn) Read(ctx context.Context) (reply []byte, err error) {
	if c.wm == nil || c.retrier.emitter == nil {
		return c.read(ctx)
	}
	c.retrier.emitter.reporting(requestID(c.wm), func() { reply, err = c.read(ctx) })
	return reply, err
}

func (c *conn) read(ctx context.Context) ([]byte, error) {
	first := result{err: c.lost}
	if first.err == nil {
		first.reply, first.err = c.inner.Read(ctx)
	}
	if c.wm == nil {
		return first.reply, first.err // an answer that nobody asked for
	}
	if first.err == nil {
		if p, err := plain(first.reply); err == nil {
			first.reply = p
		}
		if clean(first.reply) {
			c.succeeded()
			return first.reply, nil
		}
	}
	return c.failed(ctx, first)
}

// succeeded ends an exchange whose first attempt succeeded.
func (c *conn) succeeded() {
	r := c.retrier
	if !r.adaptive && r.observer == nil && c.call == nil {
		return
	}
	name := commandName(c.wm)
	if exempt[string(name)] {
		return
	}
	switch {
	case c.call.begun():
		c.call.use(c.address())
		c.call.succeed()
	case r.adaptive:
		k := r.begin(r.strategy, spillway.KindUnknown, time.Time{})
		k.use(c.address())
		k.succeed()
	}
	if r.observer != nil {
		r.observe(string(name), c.start, 0, verdict{})
	}
}

// command returns what was written, if it is subject to the policy.
func (c *conn) command() (cmd command, ok bool) {
	wm, err := plain(c.wm)
	if err != nil {
		return cmd, false
	}
	cmd, err = parseCommand(wm, byRunCommand())
	return cmd, err == nil && !exempt[cmd.name] && cmd.flags&moreToCome == 0
}

// failed goes on after a first attempt that did not simply succeed.
func (c *conn) failed(ctx context.Context, first result) ([]byte, error) {
	cmd, ok := c.command()
	if !ok {
		c.abandon()
		return first.reply, first.err
	}
	first.verdict = c.judge(&cmd, first.reply, first.err)
	if first.served() {
		c.succeeded()
		return first.reply, nil
	}
	deadline, _ := ctx.Deadline()
	c.begin(c.retrier.strategyFor(&cmd), cmd.kind, deadline)
	c.call.use(c.address())
	s := sequel{conn: c, cmd: &cmd, first: requestID(cmd.wire), ids: c.ids(), last: first, kept: first}
	s.ids.request, s.ids.start = s.first, c.start
	return s.run(ctx)
}

// A result is what one attempt brought.
type result struct {
	verdict

	reply []byte
	err   error // instead of a reply
}

// A sequel is what follows a failed first attempt.
type sequel struct {
	*conn

	cmd      *command
	first    int64 // request ID of the first attempt, the only one that the driver knows
	ids      ids   // of the last attempt
	last     result
	kept     result // what failed, if the last one wrote nothing
	resent   int    // attempts after the first
	reported bool   // the failure of the last attempt is known to the monitor
}

// run makes further attempts while the policy grants them.
func (s *sequel) run(ctx context.Context) ([]byte, error) {
	failure := s.last.failure(s.retrier)
	for {
		now := time.Now()
		if !s.call.refresh(now, failure) {
			return s.end(ctx)
		}
		s.depart(ctx)
		if !s.call.wait(ctx, now) {
			return s.end(ctx)
		}
		if err := s.reenter(ctx, s.cmd.cursor(), s.call.avoid); err != nil {
			v := judgeOpening(err)
			if failure = v.failure(s.retrier); failure.Retryable(false) {
				s.call.sent()
				s.call.use(s.server.address())
				continue
			}
			s.call.giveBack()
			return s.end(ctx)
		}
		if !s.attempt(ctx) {
			return s.end(ctx)
		}
		if s.last.served() {
			s.call.succeed()
			return s.end(ctx)
		}
		failure = s.last.failure(s.retrier)
	}
}

// depart leaves the server of a failed attempt, for another one to come.
func (s *sequel) depart(ctx context.Context) {
	if s.reported {
		return
	}
	s.reported = true
	s.retrier.emitter.finished(ctx, s.first, s.cmd, s.ids, s.last.verdict)
	if id, ok := s.session(s.cmd); ok && s.last.err != nil {
		s.retrier.sessions.spoil(ctx, s.cmd, id)
	}
	s.settle(s.last.verdict)
	if s.cmd.name == "commitTransaction" && !(s.last.overloaded && s.last.safe) {
		_, timed := ctx.Deadline()
		_ = s.cmd.majority(!timed) // else it goes as it was
	}
	s.leave(s.last.err != nil)
}

// attempt sends the command once more, and reports whether there was time for it.
func (s *sequel) attempt(ctx context.Context) bool {
	if deadline, ok := ctx.Deadline(); ok {
		left := s.remaining(deadline)
		if left <= 0 {
			s.call.giveBack()
			return false
		}
		s.cmd.shorten(left)
	}
	id := nextRequestID()
	s.cmd.number(id)
	s.call.use(s.address())
	s.ids = s.conn.ids()
	s.ids.request = int64(id)
	s.ids.start = s.retrier.clock()
	s.resent++
	s.call.sent()
	s.retrier.emitter.started(ctx, s.first, s.cmd, s.ids)
	s.reported = false
	s.last = s.roundTrip(ctx)
	if !s.last.served() && !s.last.nothingWritten && s.last.coded {
		s.kept = s.last
	}
	return true
}

func (s *sequel) roundTrip(ctx context.Context) (r result) {
	var wm []byte
	if wm, r.err = s.compressed(s.cmd); r.err == nil {
		if r.err = s.inner.Write(ctx, wm); r.err == nil {
			r.reply, r.err = s.inner.Read(ctx)
		}
	}
	if r.err == nil {
		if p, err := plain(r.reply); err == nil {
			r.reply = p
		}
	}
	r.verdict = s.judge(s.cmd, r.reply, r.err)
	return r
}

// end returns the answer that the driver is to see, and keeps it from retrying.
func (s *sequel) end(ctx context.Context) ([]byte, error) {
	out := s.last
	if out.nothingWritten && s.resent > 0 {
		if out = s.kept; !s.reported {
			s.settle(s.last.verdict)
		}
		s.settled = true
	}
	if id, ok := s.session(s.cmd); ok && out.err != nil {
		s.retrier.sessions.returned(id)
	}
	s.retrier.observe(s.cmd.name, s.start, s.resent, out.verdict)
	stop := s.cmd.driverRetries() && !out.served()
	if s.resent > 0 || s.reported || stop {
		s.retrier.emitter.expect(s.first, s.fate())
	}
	switch {
	case !stop:
		_, deadline := ctx.Deadline()
		s.stop(s.cmd, deadline, out.verdict.err)
		return out.reply, out.err
	case out.err != nil:
		if !s.reported && !s.settled {
			s.settle(s.last.verdict) // the driver's servers do not look behind a lastError
		}
		return nil, lastError{out.err, new(atomic.Int32)}
	case s.cmd.name == "commitTransaction" && out.again:
		out.reply = withLabel(out.reply, "UnknownTransactionCommitResult", len(labelsOf(out.verdict.err)))
	}
	s.final = true
	return out.reply, nil
}

// fate returns how to change the event with which the driver ends the command.
func (s *sequel) fate() fate {
	f := fate{drop: s.reported, ids: s.ids}
	if !s.last.done {
		f.err = s.last.verdict.err
	}
	return f
}
