package suite_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/spillmongo"
	"github.com/seed90641741/spillway/spillmongo/mongotest"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// An attempt is one command as the monitor saw it begin and end.
type attempt struct {
	name         string
	request      int64
	connection   string
	command      bson.Raw
	began, ended time.Time
	failure      error
	ends         int
}

// A recorder is a monitor that holds events together by their ids.
type recorder struct {
	mu  sync.Mutex
	all []*attempt
}

func (r *recorder) monitor() *event.CommandMonitor {
	return &event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStartedEvent) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.all = append(r.all, &attempt{name: e.CommandName, request: e.RequestID, connection: e.ConnectionID, command: e.Command, began: time.Now()})
		},
		Succeeded: func(_ context.Context, e *event.CommandSucceededEvent) { r.end(&e.CommandFinishedEvent, nil) },
		Failed:    func(_ context.Context, e *event.CommandFailedEvent) { r.end(&e.CommandFinishedEvent, e.Failure) },
	}
}

func (r *recorder) end(e *event.CommandFinishedEvent, failure error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.all {
		if a.request == e.RequestID && a.connection == e.ConnectionID {
			a.ends++
			a.ended, a.failure = time.Now(), failure
			return
		}
	}
	r.all = append(r.all, &attempt{name: "stray end of " + e.CommandName, request: e.RequestID, connection: e.ConnectionID})
}

// take returns the attempts at the command so far, which must each have ended once,
// and forgets everything.
func (r *recorder) take(t testing.TB, name string) (of []*attempt) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := map[int64]bool{}
	for _, a := range r.all {
		if a.ends != 1 {
			t.Errorf("%s (request %d on %s) ended %d times", a.name, a.request, a.connection, a.ends)
		}
		if seen[a.request] {
			t.Errorf("%s: two attempts have the request ID %d", a.name, a.request)
		}
		seen[a.request] = true
		if a.name == name {
			of = append(of, a)
		}
	}
	r.all = nil
	return of
}

// A rig is a deployment and a client of it, with a policy.
type rig struct {
	*mongotest.Deployment

	t       testing.TB
	client  *mongo.Client
	retrier *spillmongo.Retrier
	events  *recorder
	coll    *mongo.Collection
	script  *script
}

// setUp starts a deployment and connects to it. more changes the options of the client.
func setUp(t testing.TB, mc mongotest.Config, c spillmongo.Config, more ...func(*options.ClientOptions)) *rig {
	t.Helper()
	r := &rig{t: t, events: new(recorder), script: new(script)}
	observe := mc.Observe
	mc.Observe = func(c mongotest.Command) {
		if observe != nil {
			observe(c)
		}
		r.script.play(r, c)
	}
	r.Deployment = mongotest.Start(t, mc)
	o := r.Options().SetMonitor(r.events.monitor()).SetAppName("spillmongo")
	for _, f := range more {
		f(o)
	}
	r.retrier = must(spillmongo.New(o, c))
	r.client = must(mongo.Connect(r.retrier.ClientOptions()))
	t.Cleanup(func() {
		if err := r.client.Disconnect(context.Background()); err != nil {
			t.Error(err)
		}
	})
	r.coll = r.client.Database("test").Collection("things")
	return r
}

// fail sets the fail point of node i.
func (r *rig) fail(i int, mode any, data bson.D) {
	r.t.Helper()
	if _, err := r.Node(i).RunCommand("admin", bson.D{
		{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: mode}, {Key: "data", Value: data},
	}); err != nil {
		r.t.Error(err)
	}
}

func times(n int) bson.D { return bson.D{{Key: "times", Value: n}} }

// overload is data for a fail point that rejects a command as an overloaded server
// does.
func overload(commands ...string) bson.D {
	return bson.D{
		{Key: "failCommands", Value: commands}, {Key: "errorCode", Value: 462},
		{Key: "errorLabels", Value: bson.A{"SystemOverloadedError", "RetryableError"}},
	}
}

// A script says how each attempt at one command ends, at whatever node.
type script struct {
	mu      sync.Mutex
	command string
	steps   string
	played  []int // nodes
}

// The steps of a script.
const stepNames = "O overload, W overload of a write, x another retryable error, h one that leaves the server known, E a retryable write error, c closed connection, " +
	"w a write concern error that is retryable, b blocked for ten seconds, n an error that is not retryable, L overload that is not retryable, s success"

func (s *script) set(command, steps string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.command, s.steps, s.played = command, steps, nil
}

// nodes returns where the attempts were made.
func (s *script) nodes() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.played)
}

func (s *script) play(r *rig, c mongotest.Command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Name != s.command || s.command == "" {
		return
	}
	step := byte('s')
	if len(s.steps) > 0 {
		step, s.steps = s.steps[0], s.steps[1:]
	}
	s.played = append(s.played, c.Node)
	data, label := overload(c.Name), func(labels ...string) bson.E { return bson.E{Key: "errorLabels", Value: labels} }
	switch step {
	case 'O':
	case 'W':
		data[2] = label("SystemOverloadedError", "RetryableError", "RetryableWriteError", "NoWritesPerformed")
	case 'L':
		data[2] = label("SystemOverloadedError")
	case 'x':
		data[1].Value, data[2] = 91, label("RetryableWriteError")
	case 'h':
		data[1].Value, data[2] = 6, label("RetryableError")
	case 'E':
		data[1].Value, data[2] = 11600, label("RetryableWriteError", "NoWritesPerformed")
	case 'n':
		data[1].Value, data[2] = 8000, label()
	case 'c':
		data = bson.D{data[0], {Key: "closeConnection", Value: true}}
	case 'b':
		data = bson.D{data[0], {Key: "blockConnection", Value: true}, {Key: "blockTimeMS", Value: 10_000}}
	case 'w':
		data = bson.D{data[0], {Key: "writeConcernError", Value: bson.D{
			{Key: "code", Value: 91}, {Key: "errmsg", Value: "w"},
		}}, label("RetryableWriteError")}
	case 's':
		r.fail(c.Node, "off", nil)
		return
	default:
		panic(fmt.Sprintf("%c is none of: %s", step, stepNames))
	}
	r.fail(c.Node, times(1), data)
}

// labels returns which of the labels that matter here err has.
func labels(err error) string {
	var l mongo.LabeledError
	if !errors.As(err, &l) {
		return ""
	}
	var has []string
	for _, label := range []string{"SystemOverloadedError", "RetryableError", "RetryableWriteError", "NetworkError", "UnknownTransactionCommitResult", "TransientTransactionError"} {
		if l.HasErrorLabel(label) {
			has = append(has, label)
		}
	}
	return strings.Join(has, " ")
}

const bothLabels = "SystemOverloadedError RetryableError"

func fixed(u float64) func() float64 { return func() float64 { return u } }

// bubble runs f in virtual time. Clients and servers in it talk through pipes.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// bucket returns a bucket of 1000 tokens that holds some of them.
func bucket(tokens float64) *budget.Bucket {
	b := must(budget.New(budget.Config{Capacity: 1000}))
	b.Withdraw(time.Time{}, "", 1000-tokens)
	return b
}

// vectors reads a file of the project's own test data.
func vectors(t testing.TB, name string, to any) {
	t.Helper()
	data, err := os.ReadFile("../../../conformance/retry/" + name)
	if err == nil {
		err = json.Unmarshal(data, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}
