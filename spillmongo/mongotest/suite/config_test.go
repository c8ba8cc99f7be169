package suite_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/spillmongo"
	"github.com/seed90641741/spillway/spillmongo/mongotest"
)

func TestConfigOutOfRangeNamesTheField(t *testing.T) {
	for want, row := range map[string]struct {
		options *options.ClientOptions
		config  spillmongo.Config
	}{
		`Revision is "2025"`:                   {options.Client(), spillmongo.Config{Revision: "2025"}},
		"AutoEncryptionOptions is set":         {options.Client().SetAutoEncryptionOptions(options.AutoEncryption()), spillmongo.Config{}},
		"MaxAdaptiveRetries is 3, must be nil": {options.Client().SetMaxAdaptiveRetries(3), spillmongo.Config{}},
		"MaxAdaptiveRetries is 2000, must be":  {options.Client().SetMaxAdaptiveRetries(2000), spillmongo.Config{Revision: "2026-07"}},
		"EnableOverloadRetargeting is true":    {options.Client().SetEnableOverloadRetargeting(true), spillmongo.Config{}},
		"Deployment is set":                    {must(spillmongo.New(nil, spillmongo.Config{})).ClientOptions(), spillmongo.Config{}},
		"srvMaxHosts":                          {options.Client().SetSRVMaxHosts(1).SetReplicaSet("x"), spillmongo.Config{}},
	} {
		r, err := spillmongo.New(row.options, row.config)
		if r != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
}

// TestOptionsAreNotChanged: the same options serve a client without a policy too.
func TestOptionsAreNotChanged(t *testing.T) {
	o := options.Client().ApplyURI("mongodb://user:secret@127.0.0.1/?retryReads=false")
	before := *o
	own := must(spillmongo.New(o, spillmongo.Config{})).ClientOptions()
	if o.Dialer != nil || o.Monitor != nil || o.RetryReads != before.RetryReads || own == o {
		t.Error("the options were changed")
	}
}

// TestURI reads the option that the driver does not know.
func TestURI(t *testing.T) {
	for query, want := range map[string]struct {
		capacity float64
		warnings int
	}{
		"":                                   {0, 0},
		"adaptiveRetries=true":               {1000, 0},
		"adaptiveRetries=false":              {0, 0},
		"ADAPTIVERETRIES=true&appName=x":     {1000, 0},
		"appName=x&adaptiveRetries=invalid":  {0, 1},
		"adaptiveRetries=%74rue&appName=a=b": {1000, 0},
		"adaptiveRetries=":                   {0, 1},
	} {
		o := options.Client().ApplyURI("mongodb://127.0.0.1/?" + query)
		if err := o.Validate(); err != nil {
			t.Logf("%s: the driver: %v", query, err)
			continue
		}
		r := must(spillmongo.New(o, spillmongo.Config{}))
		if got := r.Stats(time.Now()).Budget.Capacity; got != want.capacity || len(r.Warnings()) != want.warnings {
			t.Errorf("%s: %v tokens, warnings %q; want %v", query, got, r.Warnings(), want)
		}
	}
}

// TestReadsAndWrites: each is retried if its option allows it, and runCommand, whatever
// it runs, if both do.
func TestReadsAndWrites(t *testing.T) {
	run := func(name string) func(context.Context, *rig) error {
		return func(ctx context.Context, r *rig) error {
			return r.client.Database("test").RunCommand(ctx, bson.D{{Key: name, Value: "things"}}).Err()
		}
	}
	aggregate := func(stages ...any) func(context.Context, *rig) error {
		return func(ctx context.Context, r *rig) error {
			_, err := r.coll.Aggregate(ctx, append([]any{}, stages...))
			return err
		}
	}
	for _, row := range []struct {
		name, command string
		f             func(context.Context, *rig) error
		reads, writes bool // retried if only these are on
	}{
		{"find", "find", operations["find"], true, false},
		{"insert", "insert", operations["insert"], false, true},
		{"updateMany", "update", operations["update"], false, true},
		{"ping", "ping", run("ping"), false, false},
		{"runCommand find", "find", run("find"), false, false},
		{"runCommand logout", "logout", run("logout"), false, false},
		{"aggregate", "aggregate", aggregate(), true, false},
		{"aggregate and write", "aggregate", aggregate(bson.D{{Key: "$out", Value: "others"}}), false, true},
	} {
		for _, on := range [][2]bool{{true, true}, {true, false}, {false, true}, {false, false}} {
			bubble(t, func(t *testing.T) {
				r := setUp(t, pipes, spillmongo.Config{}, func(o *options.ClientOptions) { o.SetRetryReads(on[0]).SetRetryWrites(on[1]) })
				want := on[0] && on[1] || on[0] && row.reads || on[1] && row.writes
				r.script.set(row.command, "Os")
				err := row.f(t.Context(), r)
				if (err == nil) != want {
					t.Errorf("%s with retryReads=%v, retryWrites=%v: %v", row.name, on[0], on[1], err)
				}
			})
		}
	}
}

// TestRunCommandIsNoRetryableRead: other errors of it are not retried.
func TestRunCommandIsNoRetryableRead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := setUp(t, pipes, spillmongo.Config{})
		r.script.set("find", "xs")
		if err := r.client.Database("test").RunCommand(t.Context(), bson.D{{Key: "find", Value: "things"}}).Err(); err == nil {
			t.Error("retried")
		}
	})
}

// TestMaxTimeMS: each attempt sends the time that it has left, not the time of the first one.
func TestMaxTimeMS(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var mu sync.Mutex
		var told []int64
		mc := pipes
		mc.Observe = func(c mongotest.Command) {
			if c.Name == "insert" {
				mu.Lock()
				defer mu.Unlock()
				ms, _ := c.Body.Lookup("maxTimeMS").AsInt64OK()
				told = append(told, ms)
			}
		}
		r := setUp(t, mc, spillmongo.Config{Rand: fixed(1)}, func(o *options.ClientOptions) { o.SetTimeout(2 * time.Second) })
		if err := r.client.Ping(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		r.script.set("insert", "OOOs")
		if _, err := r.coll.InsertOne(t.Context(), bson.D{}); err != nil {
			t.Fatal(err)
		}
		if len(told) != 4 || told[0] != 2000 || told[1] != 1900 || told[2] != 1700 || told[3] != 1300 {
			t.Errorf("maxTimeMS was %v", told)
		}
		for i, a := range r.events.take(t, "insert") {
			if got := a.command.Lookup("maxTimeMS").AsInt64(); got != told[i] {
				t.Errorf("event %d shows %d ms, %d were sent", i, got, told[i])
			}
		}
	})
}

// TestSameBytes: but for what must change, attempts are the same; and what is sent is
// what the events show.
func TestSameBytes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var mu sync.Mutex
		var sent []int64
		mc := set
		mc.Observe = func(c mongotest.Command) {
			mu.Lock()
			defer mu.Unlock()
			if operations[c.Name] != nil {
				sent = append(sent, int64(c.RequestID))
			}
		}
		r := setUp(t, mc, spillmongo.Config{})
		for command, f := range operations {
			sent = nil
			r.script.set(command, "OOOs")
			if err := f(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			all := r.events.take(t, command)
			if len(all) != 4 || len(sent) != 4 {
				t.Fatalf("%d attempts, %d at the server", len(all), len(sent))
			}
			for i, a := range all {
				if a.request != sent[i] {
					t.Errorf("%s: request ID %d in the event, %d in the message", command, a.request, sent[i])
				}
				if a.command.String() != all[0].command.String() {
					t.Errorf("%s became %v", all[0].command, a.command)
				}
			}
		}
	})
}

// TestObserver: one event for each command.
func TestObserver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []string
		observer := spillway.ObserverFunc(func(e spillway.Event) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, strings.Join([]string{e.Policy, e.Call.Key, e.Outcome.String(), strconv.Itoa(int(e.Call.Attempt))}, " "))
			if e.Time.IsZero() || (e.Err == nil) != (e.Outcome == spillway.OutcomeServed) {
				t.Errorf("%+v", e)
			}
		})
		r := setUp(t, pipes, spillmongo.Config{Observer: observer, Rand: fixed(1)})
		for _, row := range []struct{ steps, want string }{
			{"s", "retry find served 0"},
			{"OOs", "retry find served 2"},
			{"OOOOOO", "retry find overloaded 5"},
			{"On", "retry find failed 1"},
			{"n", "retry find failed 0"},
		} {
			got = nil
			r.script.set("find", row.steps)
			_, _ = r.coll.Find(t.Context(), bson.D{})
			if len(got) != 1 || got[0] != row.want {
				t.Errorf("%s: %q, want %q", row.steps, got, row.want)
			}
		}
		s := r.retrier.Stats(time.Now())
		if s.OverloadsTotal != 9 || s.RetriesTotal != 8 || s.OverloadRetriesTotal != 8 || s.RecoveredTotal != 1 || s.Backoff != 3500*time.Millisecond ||
			s.NotRetriedTotal[retry.ReasonAttempts] != 1 || s.NotRetriedTotal[retry.ReasonNotRetryable] != 2 {
			t.Errorf("%+v", s)
		}
	})
}

// TestObserverOfAConnectionRefused: a command that gets no connection has ended too.
func TestObserverOfAConnectionRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []spillway.Event
		observer := spillway.ObserverFunc(func(e spillway.Event) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, e)
		})
		r, _ := shutOut(t, spillmongo.Config{Observer: observer, Rand: fixed(1)})
		start := time.Now()
		if _, err := r.coll.Find(t.Context(), bson.D{}); err == nil {
			t.Error("success")
		}
		if len(got) != 1 {
			t.Fatalf("%d events", len(got))
		}
		e := got[0]
		if e.Policy != "retry" || e.Outcome != spillway.OutcomeOverloaded || e.Err == nil || e.Call.Key != "" || e.Call.Attempt != 5 ||
			!e.Time.Equal(start) || e.Latency != 3100*time.Millisecond {
			t.Errorf("%+v", e)
		}
	})
}
