package spillmongo

import (
	"context"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/mnet"

	"github.com/seed90641741/spillway"
)

// A bomb is the monitor, the log and the Observer of a user. The one that it names panics.
type bomb string

func (b bomb) goOff(name string) {
	if string(b) == name {
		panic("user")
	}
}

func (b bomb) Info(_ int, msg string, _ ...any) { b.goOff(msg) }
func (b bomb) Error(error, string, ...any)      {}
func (b bomb) Observe(spillway.Event)           { b.goOff("Observer") }

func (b bomb) options() *options.ClientOptions {
	return options.Client().SetMonitor(&event.CommandMonitor{
		Started:   func(context.Context, *event.CommandStartedEvent) { b.goOff("Started") },
		Succeeded: func(context.Context, *event.CommandSucceededEvent) { b.goOff("Succeeded") },
	}).SetLoggerOptions(options.Logger().SetComponentLevel(options.LogComponentCommand, options.LogLevelDebug).SetSink(b))
}

// answering is a connection whose server answers each command.
type answering struct{ mnet.ReadWriteCloser }

func (answering) Read(context.Context) ([]byte, error) {
	return opMessage(0, bson.D{{Key: "ok", Value: 1.0}}), nil
}

// command does what the driver does with a command that is sent twice, up to a panic.
func (b bomb) command(t *testing.T, r *Retrier) (panicked bool) {
	defer func() { panicked = recover() == "user" }()
	const id = 7
	sink, monitor := r.emitter.logger(nil).Sink, r.emitter.monitor()
	wm := opMessage(0, bson.D{{Key: "find", Value: "c"}})
	wm[4] = id
	sink.Info(logLevel, logStarted, "requestId", int64(id))
	monitor.Started(t.Context(), &event.CommandStartedEvent{RequestID: id})
	c := &conn{exchange: exchange{retrier: r, wm: wm}, inner: answering{}}
	if _, err := c.Read(t.Context()); err != nil {
		t.Error(err)
	}
	r.emitter.expect(id, fate{})
	sink.Info(logLevel, logSucceeded, "requestId", int64(id))
	monitor.Succeeded(t.Context(), &event.CommandSucceededEvent{CommandFinishedEvent: event.CommandFinishedEvent{RequestID: id}})
	return false
}

// If code of the user panics, the driver reports no end of the command, and none is waited for.
func TestPanicsLeaveNoCommand(t *testing.T) {
	for _, b := range []bomb{"", logStarted, "Started", "Observer", logSucceeded, "Succeeded"} {
		e, err := newEmitter(b.options(), new(sessions))
		if err != nil {
			t.Fatal(err)
		}
		if panicked := b.command(t, &Retrier{observer: b, emitter: e}); panicked != (b != "") {
			t.Errorf("%s: panicked %v", b, panicked)
		}
		if len(e.log.running) > 0 || len(e.fates) > 0 || e.pending.Load() != 0 {
			t.Errorf("%s: %d commands are running, the fates of %d are kept", b, len(e.log.running), len(e.fates))
		}
	}
}
