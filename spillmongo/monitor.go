package spillmongo

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
)

// ids are by what events of one attempt are told from those of another.
type ids struct {
	request    int64
	connection string
	server     *int64
	service    *bson.ObjectID
	start      time.Time
}

// A fate is what becomes of the event with which the driver ends a command. The
// driver knows of the first attempt only.
type fate struct {
	drop bool // the last attempt was reported before
	ids
	err error // if the last attempt failed
}

// An emitter stands between the driver and the monitor of the user: it adds the
// events of the attempts that the driver does not know of, so that each attempt
// has one Started and one Finished event with the same ids. A nil emitter does
// nothing.
type emitter struct {
	user *event.CommandMonitor

	pending atomic.Int64
	mu      sync.Mutex
	fates   map[int64]fate // by the request ID that the driver knows
}

func newEmitter(user *event.CommandMonitor) *emitter {
	if user == nil {
		return nil
	}
	return &emitter{user: user, fates: map[int64]fate{}}
}

// monitor returns what the driver reports to. It always has all of its functions,
// so that each fate is met.
func (e *emitter) monitor() *event.CommandMonitor {
	if e == nil {
		return nil
	}
	return &event.CommandMonitor{
		Started: func(ctx context.Context, s *event.CommandStartedEvent) {
			if e.user.Started != nil {
				e.user.Started(ctx, s)
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
	if e.user.Failed != nil {
		e.user.Failed(ctx, &event.CommandFailedEvent{CommandFinishedEvent: f, Failure: err})
	}
}

// expect says what is to become of the driver's last event of a command.
func (e *emitter) expect(request int64, f fate) {
	if e == nil {
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
	if f, ok = e.fates[request]; ok {
		delete(e.fates, request)
		e.pending.Add(-1)
	}
	return f, ok
}

// apply makes s the event of the last attempt, and reports whether it is wanted.
func (f *fate) apply(s *event.CommandFinishedEvent) bool {
	s.RequestID, s.ConnectionID, s.ServerConnectionID, s.ServiceID = f.request, f.connection, f.server, f.service
	s.Duration = time.Since(f.start)
	return !f.drop
}

func (e *emitter) started(ctx context.Context, cmd *command, i ids) {
	if e == nil || e.user.Started == nil {
		return
	}
	s := &event.CommandStartedEvent{
		DatabaseName: cmd.database(), CommandName: cmd.name, RequestID: i.request,
		ConnectionID: i.connection, ServerConnectionID: i.server, ServiceID: i.service,
	}
	if !cmd.secret() {
		s.Command = cmd.command()
	}
	e.user.Started(ctx, s)
}

// finished reports an attempt that is not the last.
func (e *emitter) finished(ctx context.Context, cmd *command, i ids, v verdict) {
	if e == nil {
		return
	}
	f := event.CommandFinishedEvent{
		Duration: time.Since(i.start), CommandName: cmd.name, DatabaseName: cmd.database(), RequestID: i.request,
		ConnectionID: i.connection, ServerConnectionID: i.server, ServiceID: i.service,
	}
	switch {
	case v.done && e.user.Succeeded != nil:
		s := &event.CommandSucceededEvent{CommandFinishedEvent: f, Reply: bson.Raw{}}
		if !cmd.secret() {
			s.Reply = v.reply
		}
		e.user.Succeeded(ctx, s)
	case !v.done:
		e.failed(ctx, f, v.err)
	}
}
