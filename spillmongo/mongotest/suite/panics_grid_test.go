package suite_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed90641741/spillway/spillmongo"
	"github.com/seed90641741/spillway/spillmongo/mongotest"
	"github.com/seed90641741/spillway/spilltest"
)

// A burningRig is a client with one connection, whose monitor, log, Observer and jitter burn.
type burningRig struct {
	*mongo.Collection
	taken *atomic.Int64 // connections out of the pool
}

func (r burningRig) Held() int { return int(r.taken.Load()) }

func (r burningRig) Close() error { return r.Database().Client().Disconnect(context.Background()) }

// burningSink is a log of the user.
type burningSink struct{ *spilltest.Fuse }

func (s burningSink) Info(_ int, msg string, _ ...any) {
	if strings.HasPrefix(msg, "Command ") {
		s.Burn("Log")
	}
}

func (s burningSink) Error(error, string, ...any) {}

// burningMonitor is a monitor of the user.
func burningMonitor(f *spilltest.Fuse) *event.CommandMonitor {
	return &event.CommandMonitor{
		Started:   func(context.Context, *event.CommandStartedEvent) { f.Burn("Started") },
		Succeeded: func(context.Context, *event.CommandSucceededEvent) { f.Burn("Succeeded") },
		Failed:    func(context.Context, *event.CommandFailedEvent) { f.Burn("Failed") },
	}
}

// counted counts the connections that are out of the pool.
func counted(n *atomic.Int64) *event.PoolMonitor {
	return &event.PoolMonitor{Event: func(e *event.PoolEvent) {
		switch e.Type {
		case event.ConnectionCheckedOut:
			n.Add(1)
		case event.ConnectionCheckedIn:
			n.Add(-1)
		}
	}}
}

// worker has a server answer each find as the work of a fuse says. A fuse panics in the goroutine that calls it, which is the server's.
type worker struct {
	mu   sync.Mutex
	rig  *rig
	fuse *spilltest.Fuse
}

func (w *worker) observe(c mongotest.Command) {
	if c.Name != "find" {
		return
	}
	var err error
	_ = w.fuse.Try(func() error { err = w.fuse.Work(context.Background()); return nil })
	w.mu.Lock()
	defer w.mu.Unlock()
	step := "s"
	switch {
	case errors.Is(err, spilltest.ErrBusy):
		step = "O"
	case err != nil:
		step = "n"
	}
	w.rig.script.set("find", step)
	w.rig.script.play(w.rig, c)
}

// scan reads documents over several batches.
func scan(ctx context.Context, f *spilltest.Fuse, r burningRig) error {
	cur, err := r.Find(ctx, bson.D{}, options.Find().SetBatchSize(2))
	if err != nil {
		return err
	}
	defer cur.Close(ctx)
	n := 0
	for cur.Next(ctx) {
		f.Burn("document")
		n++
	}
	if err := cur.Err(); err != nil || n == 5 {
		return err
	}
	return errors.New("not all documents")
}

func testPanics(t *testing.T) {
	points := spilltest.Calls(func(ctx context.Context, r burningRig) error {
		_, err := r.Find(ctx, bson.D{})
		return err
	}, nil)
	points.Rejected.Do, points.Rejected.Not = nil, "nothing is rejected: operations wait for a connection"
	points.Hedge.Do, points.Hedge.Not = nil, "operations are not hedged"
	points.Stream.Do = scan
	spilltest.TestPanics(t, openBurning, points)
}

func openBurning(t *testing.T, f *spilltest.Fuse) burningRig {
	w := &worker{fuse: f, rig: &rig{t: t, script: new(script)}}
	w.rig.Deployment = mongotest.Start(t, mongotest.Config{Pipes: true, Observe: w.observe})
	taken := new(atomic.Int64)
	o := w.rig.Options().SetMaxPoolSize(1).SetMonitor(burningMonitor(f)).SetPoolMonitor(counted(taken)).SetHeartbeatInterval(time.Hour)
	logTo(burningSink{f})(o)
	retrier := must(spillmongo.New(o, spillmongo.Config{
		AdaptiveRetries: true, Observer: f, Rand: func() float64 { f.Burn("Rand"); return 0.5 },
	}))
	r := burningRig{must(mongo.Connect(retrier.ClientOptions())).Database("test").Collection("things"), taken}
	if _, err := r.InsertMany(t.Context(), []bson.D{{}, {}, {}, {}, {}}); err != nil {
		t.Fatal(err)
	}
	return r
}
