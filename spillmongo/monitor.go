package spillmongo

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// ids identify one attempt in its events and log messages.
type ids struct {
	request    int64
	connection string
	driver     int64 // the connection, by the driver's number
	address    string
	server     *int64
	service    *bson.ObjectID
	start      time.Time
}

// A fate says how to change the event and the log message with which the driver ends a
// command. The driver knows of the first attempt only.
type fate struct {
	drop bool // the last attempt was reported before
	ids
	err  error // if the last attempt failed
	left int   // how many will ask: the monitor, the log, or both
}

// An emitter stands between the driver and the monitor and the log of the user: it adds
// the events and the messages of the attempts that the driver does not know of, so that
// each attempt has one that starts and one that ends, with the same ids. A nil emitter
// does nothing. No lock is held while the user's functions run.
type emitter struct {
	user     *event.CommandMonitor // nil without one
	log      *commandLog           // nil unless commands are logged
	sessions *sessions

	pending atomic.Int64
	mu      sync.Mutex
	fates   map[int64]fate // by the request ID that the driver knows
}

func newEmitter(o *options.ClientOptions, s *sessions) (*emitter, error) {
	log, err := newCommandLog(o.LoggerOptions)
	if err != nil || o.Monitor == nil && log == nil {
		return nil, err
	}
	return &emitter{user: o.Monitor, log: log, sessions: s, fates: map[int64]fate{}}, nil
}

// monitor returns what the driver reports to. It always has all of its functions,
// so that each fate is met.
func (e *emitter) monitor() *event.CommandMonitor {
	if e == nil || e.user == nil {
		return nil
	}
	return &event.CommandMonitor{
		Started: func(ctx context.Context, s *event.CommandStartedEvent) {
			if e.user.Started != nil {
				s.Command = e.sessions.shown(ctx, s.Command)
				e.reporting(s.RequestID, func() { e.user.Started(ctx, s) })
			}
		},
		Succeeded: func(ctx context.Context, s *event.CommandSucceededEvent) {
			switch f, ok := e.meet(s.RequestID); {
			case ok && !f.apply(&s.CommandFinishedEvent):
			case ok && f.err != nil:
				e.failed(ctx, s.CommandFinishedEvent, f.err)
			case e.user.Succeeded != nil:
				e.user.Succeeded(ctx, s)
			}
		},
		Failed: func(ctx context.Context, s *event.CommandFailedEvent) {
			f, ok := e.meet(s.RequestID)
			if ok && !f.apply(&s.CommandFinishedEvent) {
				return
			}
			if ok && f.err != nil {
				s.Failure = f.err
			}
			e.failed(ctx, s.CommandFinishedEvent, s.Failure)
		},
	}
}

func (e *emitter) failed(ctx context.Context, f event.CommandFinishedEvent, err error) {
	if e.user != nil && e.user.Failed != nil {
		e.user.Failed(ctx, &event.CommandFailedEvent{CommandFinishedEvent: f, Failure: err})
	}
}

// expect says how to change the driver's last report of a command.
func (e *emitter) expect(request int64, f fate) {
	if e == nil {
		return
	}
	if e.user != nil {
		f.left++
	}
	if e.log.has(request) {
		f.left++
	}
	if f.left == 0 {
		return
	}
	e.mu.Lock()
	e.fates[request] = f
	e.mu.Unlock()
	e.pending.Add(1)
}

func (e *emitter) meet(request int64) (f fate, ok bool) {
	if e.pending.Load() == 0 {
		return f, false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if f, ok = e.fates[request]; !ok {
		return f, false
	}
	if f.left--; f.left > 0 {
		e.fates[request] = f
		return f, true
	}
	delete(e.fates, request)
	e.pending.Add(-1)
	return f, true
}

// reporting calls code of the user that is part of a command, or calls such code. If that panics, the driver reports nothing more of the
// command, and neither its end nor its fate must be waited for.
func (e *emitter) reporting(request int64, f func()) {
	if e == nil {
		f()
		return
	}
	returned := false
	defer func() {
		if !returned {
			e.log.end(request)
			for ok := true; ok; {
				_, ok = e.meet(request)
			}
		}
	}()
	f()
	returned = true
}

// apply makes s the event of the last attempt, and reports whether it is wanted.
func (f *fate) apply(s *event.CommandFinishedEvent) bool {
	s.RequestID, s.ConnectionID, s.ServerConnectionID, s.ServiceID = f.request, f.connection, f.server, f.service
	s.Duration = time.Since(f.start)
	return !f.drop
}

// started reports an attempt after the first, which had that request ID.
func (e *emitter) started(ctx context.Context, first int64, cmd *command, i ids) {
	if e == nil {
		return
	}
	var body bson.Raw
	if !cmd.secret() {
		body = cmd.command()
	}
	if e.log.has(first) {
		e.log.started(cmd.name, cmd.database(), i, body)
	}
	if e.user == nil || e.user.Started == nil {
		return
	}
	e.user.Started(ctx, &event.CommandStartedEvent{
		DatabaseName: cmd.database(), CommandName: cmd.name, RequestID: i.request, Command: body,
		ConnectionID: i.connection, ServerConnectionID: i.server, ServiceID: i.service,
	})
}

// finished reports an attempt that is not the last.
func (e *emitter) finished(ctx context.Context, first int64, cmd *command, i ids, v verdict) {
	if e == nil {
		return
	}
	f := event.CommandFinishedEvent{
		Duration: time.Since(i.start), CommandName: cmd.name, DatabaseName: cmd.database(), RequestID: i.request,
		ConnectionID: i.connection, ServerConnectionID: i.server, ServiceID: i.service,
	}
	reply := v.reply
	if cmd.secret() {
		reply = bson.Raw{}
	}
	if e.log.has(first) {
		e.log.finished(f, i, v, reply)
	}
	switch {
	case !v.done:
		e.failed(ctx, f, v.err)
	case e.user != nil && e.user.Succeeded != nil:
		e.user.Succeeded(ctx, &event.CommandSucceededEvent{CommandFinishedEvent: f, Reply: reply})
	}
}

// close closes what was opened to log to.
func (e *emitter) close() error {
	if e == nil || e.log == nil || e.log.file == nil {
		return nil
	}
	return e.log.file.Close()
}
