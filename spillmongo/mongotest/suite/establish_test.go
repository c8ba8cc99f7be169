package suite_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed90641741/spillway/spillmongo"
)

// TestEstablishmentIsExempt: a server that answers hello, or a command that
// authenticates, with both labels, without end, gets one handshake for a command, and
// costs no token. The network alone makes an overload of it.
func TestEstablishmentIsExempt(t *testing.T) {
	both := bson.E{Key: "errorLabels", Value: bson.A{"SystemOverloadedError", "RetryableError", "NetworkError"}}
	for _, row := range []struct {
		command    string
		data       bson.D
		handshakes uint64
		tokens     float64
	}{
		{"isMaster", bson.D{{Key: "errorCode", Value: 462}, both}, 1, 500},
		{"isMaster", bson.D{{Key: "closeConnection", Value: true}}, 6, 495},
		{"saslStart", bson.D{{Key: "errorCode", Value: 462}, both}, 1, 500},
		{"saslContinue", bson.D{{Key: "errorCode", Value: 462}, both}, 1, 500},
		{"saslContinue", bson.D{{Key: "closeConnection", Value: true}}, 1, 500},
	} {
		bubble(t, func(t *testing.T) {
			b := bucket(500)
			mc := pipes
			if row.command != "isMaster" {
				mc.Users = map[string]string{"ann": "secret"}
			}
			r := setUp(t, mc, spillmongo.Config{Budget: b, Rand: fixed(1)}, func(o *options.ClientOptions) {
				o.SetHeartbeatInterval(time.Hour).SetServerSelectionTimeout(time.Second)
				if row.command == "saslStart" { // without the speculative one in the hello
					o.SetAuth(options.Credential{Username: "ann", Password: "secret", AuthMechanism: "PLAIN"})
				} else if mc.Users != nil {
					o.SetAuth(options.Credential{Username: "ann", Password: "secret"})
				}
			})
			time.Sleep(time.Second) // in which the server becomes known
			synctest.Wait()
			before := r.Node(0).Stats().Commands[row.command]
			r.fail(0, "alwaysOn", append(bson.D{{Key: "failCommands", Value: bson.A{row.command}}}, row.data...))
			err := r.client.Database("test").RunCommand(t.Context(), bson.D{{Key: "ping", Value: 1}}).Err()
			if err == nil {
				t.Fatal("success")
			}
			if n := r.Node(0).Stats().Commands[row.command] - before; n != row.handshakes {
				t.Errorf("%s %v: %d handshakes, want %d: %v", row.command, row.data[0], n, row.handshakes, err)
			}
			if got := b.Stats(time.Now()).Tokens; got != row.tokens {
				t.Errorf("%s %v: %v tokens, want %v", row.command, row.data[0], got, row.tokens)
			}
			r.fail(0, "off", nil)
		})
	}
}

// TestCheckoutThenCommand: after a failed checkout a command is retried as its kind asks
// for, whether the deadline is of the context or of the client.
func TestCheckoutThenCommand(t *testing.T) {
	for _, row := range []struct {
		name           string
		reads, writes  bool
		command, steps string
		attempts       int // of the command
	}{
		{"a read without retries of writes", true, false, "find", "Os", 2},
		{"a write without retries of reads", false, true, "insert", "Os", 2},
		{"a read without retries of reads", false, true, "find", "Os", 0},
		{"a write without retries of writes", true, false, "insert", "Os", 0},
		{"a drop without retries of reads", false, true, "drop", "Os", 2},
		{"runCommand without retries of reads", false, true, "ping", "Os", 0},
	} {
		for _, how := range []string{"context", "client"} {
			t.Run(row.name+"/"+how, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					var g *gate
					r := setUp(t, pipes, spillmongo.Config{Rand: fixed(1)}, func(o *options.ClientOptions) {
						g = &gate{ContextDialer: o.Dialer}
						o.SetDialer(g).SetRetryReads(row.reads).SetRetryWrites(row.writes)
						if how == "client" {
							o.SetTimeout(time.Minute)
						}
					})
					time.Sleep(time.Second)
					synctest.Wait()
					g.shut(true)
					time.AfterFunc(50*time.Millisecond, func() { g.shut(false) })
					ctx := t.Context()
					if how == "context" {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, time.Minute)
						defer cancel()
					}
					r.script.set(row.command, row.steps)
					var err error
					switch row.command {
					case "ping":
						err = r.client.Database("test").RunCommand(ctx, bson.D{{Key: "ping", Value: 1}}).Err()
					case "drop":
						err = r.coll.Drop(ctx)
					default:
						err = operations[row.command](ctx, r)
					}
					if n := len(r.script.nodes()); n != row.attempts {
						t.Errorf("%d attempts at the command, want %d: %v", n, row.attempts, err)
					}
				})
			})
		}
	}
}

// TestClearedPoolThenCommand: after a checkout that failed because the pool was cleared,
// which is no overload, other errors are retried until the deadline of the operation,
// whether that is of the context or of the client, or once if absent.
func TestClearedPoolThenCommand(t *testing.T) {
	for how, want := range map[string]int{"context": 8, "client": 8, "no deadline": 1} {
		for _, command := range []string{"find", "insert"} {
			bubble(t, func(t *testing.T) {
				r := setUp(t, pipes, spillmongo.Config{Rand: fixed(1)}, func(o *options.ClientOptions) {
					// A streamed heartbeat that the driver breaks off may clear the pool once more.
					o.SetMaxPoolSize(1).SetServerMonitoringMode(options.ServerMonitoringModePoll)
					if how == "client" {
						o.SetTimeout(time.Minute)
					}
				})
				if err := r.client.Ping(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
				r.fail(0, times(1), bson.D{
					{Key: "failCommands", Value: bson.A{"count"}}, {Key: "closeConnection", Value: true},
					{Key: "blockConnection", Value: true}, {Key: "blockTimeMS", Value: 100},
				})
				var work sync.WaitGroup
				work.Go(func() { _, _ = r.coll.EstimatedDocumentCount(t.Context()) })
				synctest.Wait()
				ctx := t.Context()
				if how == "context" {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, time.Minute)
					defer cancel()
				}
				r.script.set(command, "xxxxxxxs")
				err := operations[command](ctx, r)
				work.Wait()
				if n := len(r.script.nodes()); n != want {
					t.Errorf("%s of %s: %d attempts at the command, want %d: %v", how, command, n, want, err)
				}
			})
		}
	}
}

// TestRetriesCountWhatWasSent: a retry that was granted and not sent, as there was no
// time or no server, is not counted.
func TestRetriesCountWhatWasSent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := setUp(t, pipes, spillmongo.Config{Rand: fixed(1)})
		must(r.coll.InsertOne(t.Context(), bson.D{}))
		r.script.set("find", "OOOOOO")
		ctx, cancel := context.WithTimeout(t.Context(), 750*time.Millisecond)
		defer cancel()
		if err := r.coll.FindOne(ctx, bson.D{}).Err(); err == nil {
			t.Fatal("success")
		}
		if s, n := r.retrier.Stats(time.Now()), len(r.script.nodes())-1; s.RetriesTotal != uint64(n) || s.OverloadRetriesTotal != uint64(n) || n != 3 {
			t.Errorf("%d retries at the server: %+v", n, s)
		}
	})
	bubble(t, func(t *testing.T) { // the server is gone when the retry is due
		r := setUp(t, pipes, spillmongo.Config{Rand: fixed(1)}, func(o *options.ClientOptions) {
			o.SetServerSelectionTimeout(time.Second).SetHeartbeatInterval(time.Second)
		})
		must(r.coll.InsertOne(t.Context(), bson.D{}))
		r.script.set("find", "O")
		// During the backoff of 100 ms, so that the driver has noticed when the retry is due.
		time.AfterFunc(50*time.Millisecond, r.Node(0).Stop)
		if err := r.coll.FindOne(t.Context(), bson.D{}).Err(); err == nil {
			t.Fatal("success")
		}
		if s := r.retrier.Stats(time.Now()); s.OverloadsTotal != 1 || s.RetriesTotal != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestOptionsAreGoodForOneClient: they cannot be connected again, and the error says
// what to do.
func TestOptionsAreGoodForOneClient(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := setUp(t, pipes, spillmongo.Config{})
		again := func() {
			t.Helper()
			if _, err := mongo.Connect(r.retrier.ClientOptions()); err == nil || !strings.Contains(err.Error(), "make another one with New") {
				t.Errorf("connected again: %v", err)
			}
		}
		again()
		if err := r.client.Disconnect(t.Context()); err != nil {
			t.Fatal(err)
		}
		again()
		r.client = must(mongo.Connect(must(spillmongo.New(r.Options(), spillmongo.Config{})).ClientOptions()))
		if err := r.client.Ping(t.Context(), nil); err != nil {
			t.Error(err)
		}
	})
}
