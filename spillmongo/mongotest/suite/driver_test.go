package suite_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/seed90641741/spillway/spillmongo"
	"github.com/seed90641741/spillway/spillmongo/mongotest"
)

// checkCause expects an error that is never taken for a cancellation or a timeout by the
// caller, however often it is inspected.
func checkCause(t *testing.T, err error) {
	t.Helper()
	for range 3 {
		if errors.Is(err, context.Canceled) || mongo.IsTimeout(err) {
			t.Errorf("%v says that the caller left", err)
		}
	}
	if strings.Contains(err.Error(), "spillmongo") {
		t.Errorf("%v shows what is hidden from the driver", err)
	}
}

// TestDriverStartsNoLoop: after the last attempt, the driver makes no further ones, neither of
// reads nor of writes, whatever failed last, with a timeout or without. If this fails with a
// new version of the driver, the integration point of this package no longer works.
func TestDriverStartsNoLoop(t *testing.T) {
	for _, last := range "xEcOW" {
		for command, f := range operations {
			for _, timeout := range []time.Duration{time.Minute, 0} {
				bubble(t, func(t *testing.T) {
					r := setUp(t, set, spillmongo.Config{}, func(o *options.ClientOptions) { o.SetTimeout(timeout) })
					r.script.set(command, "OOOOO"+strings.Repeat(string(last), 20))
					err := f(t.Context(), r)
					if err == nil {
						t.Fatal("success")
					}
					checkCause(t, err)
					if n := len(r.script.nodes()); n != 6 {
						t.Errorf("%s after %c: %d attempts: the driver goes on by itself", command, last, n)
					}
				})
			}
		}
	}
}

// TestPoolDefaults: a client with the policy has the pools that it has without.
func TestPoolDefaults(t *testing.T) {
	for _, set := range []func(*options.ClientOptions){
		func(*options.ClientOptions) {},
		func(o *options.ClientOptions) { o.SetMaxPoolSize(0) },
		func(o *options.ClientOptions) { o.SetMaxPoolSize(7).SetMinPoolSize(2) },
	} {
		bubble(t, func(t *testing.T) {
			pools := func(connect func(*options.ClientOptions) *options.ClientOptions) (p event.MonitorPoolOptions) {
				o := mongotest.Start(t, pipes).Options()
				set(o)
				o.SetPoolMonitor(&event.PoolMonitor{Event: func(e *event.PoolEvent) {
					if e.Type == event.ConnectionPoolCreated {
						p = *e.PoolOptions
					}
				}})
				client := must(mongo.Connect(connect(o)))
				defer client.Disconnect(context.Background())
				if err := client.Ping(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
				return p
			}
			want := pools(func(o *options.ClientOptions) *options.ClientOptions { return o })
			got := pools(func(o *options.ClientOptions) *options.ClientOptions {
				return must(spillmongo.New(o, spillmongo.Config{})).ClientOptions()
			})
			if got != want {
				t.Errorf("pools of %+v, those of the driver are of %+v", got, want)
			}
		})
	}
}

// TestNetworkErrorClearsThePool: each of them does, as without the policy.
func TestNetworkErrorClearsThePool(t *testing.T) {
	for command, f := range operations {
		bubble(t, func(t *testing.T) {
			var cleared atomic.Int32
			r := setUp(t, set, spillmongo.Config{}, func(o *options.ClientOptions) {
				o.SetPoolMonitor(&event.PoolMonitor{Event: func(e *event.PoolEvent) {
					if e.Type == event.ConnectionPoolCleared {
						cleared.Add(1)
					}
				}})
			})
			r.script.set(command, "cOcccccccc")
			if err := f(t.Context(), r); err == nil {
				t.Fatal("success")
			}
			if n, closed := int(cleared.Load()), len(r.script.nodes()); closed > 1 && n != closed-1 || n == 0 {
				t.Errorf("%s: %d pools cleared in %d attempts, one of which was an overload", command, n, closed)
			}
		})
	}
}

// TestUnacknowledged: the answer of a write with w: 0 is not read, and the write is not
// retried.
func TestUnacknowledged(t *testing.T) {
	for _, compressors := range [][]string{nil, {"zlib"}} {
		bubble(t, func(t *testing.T) {
			r := setUp(t, pipes, spillmongo.Config{}, func(o *options.ClientOptions) { o.SetCompressors(compressors) })
			coll := r.client.Database("test").Collection("things", options.Collection().SetWriteConcern(&writeconcern.WriteConcern{W: 0}))
			r.script.set("insert", "OOOOOO")
			for range 3 {
				must(coll.InsertOne(t.Context(), bson.D{}))
			}
			if err := r.client.Ping(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if n := len(r.script.nodes()); n != 3 {
				t.Errorf("%d inserts at the server, want 3", n)
			}
		})
	}
}

// A tap is a dialer that looks at what is written, before it is; an error keeps it from
// being.
type tap struct {
	options.ContextDialer

	look func(message []byte) error
}

type tapped struct {
	net.Conn

	tap tap
}

func (t tap) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := t.ContextDialer.DialContext(ctx, network, address)
	return tapped{c, t}, err
}

func (c tapped) Write(p []byte) (int, error) {
	if err := c.tap.look(p); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// TestUnacknowledgedAndNotSent: what could not be sent is an error even if no answer
// is waited for.
func TestUnacknowledgedAndNotSent(t *testing.T) {
	for _, w := range []int{0, 1} {
		bubble(t, func(t *testing.T) {
			var broken atomic.Bool
			r := setUp(t, pipes, spillmongo.Config{}, func(o *options.ClientOptions) {
				o.SetDialer(tap{o.Dialer, func([]byte) error {
					if broken.Load() {
						return io.ErrClosedPipe
					}
					return nil
				}})
			})
			if err := r.client.Ping(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			broken.Store(true)
			coll := r.client.Database("test").Collection("things", options.Collection().SetWriteConcern(&writeconcern.WriteConcern{W: w}))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := coll.InsertOne(ctx, bson.D{}); err == nil || !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("w: %d: %v", w, err)
			}
			broken.Store(false)
		})
	}
}

// TestCompression: what is compressed is retried like anything else.
func TestCompression(t *testing.T) {
	for _, name := range []string{"zlib", "snappy", "zstd"} {
		r := setUp(t, mongotest.Config{}, spillmongo.Config{AdaptiveRetries: true, Rand: fixed(0)}, func(o *options.ClientOptions) {
			o.SetCompressors([]string{name})
		})
		big := strings.Repeat("x", 1000)
		r.script.set("insert", "OOs")
		must(r.coll.InsertOne(t.Context(), bson.D{{Key: "big", Value: big}}))
		r.script.set("find", "Oxs")
		var docs []bson.D
		cur := must(r.coll.Find(t.Context(), bson.D{}))
		if err := cur.All(t.Context(), &docs); err != nil || len(docs) != 1 || docs[0][1].Value != big {
			t.Errorf("%s: %v, %v", name, docs, err)
		}
		got := r.events.take(t, "find")
		if len(got) != 3 {
			t.Fatalf("%s: %d attempts", name, len(got))
		}
		for _, a := range got {
			if a.command.Lookup("find").StringValue() != "things" {
				t.Errorf("%s: an event shows %v", name, a.command)
			}
		}
		if s := r.retrier.Stats(time.Now()); s.OverloadsTotal != 3 || s.OverloadRetriesTotal != 3 || s.RetriesTotal != 4 || s.RecoveredTotal != 2 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// TestSecretsAreNotCompressed: the wire protocol has no compression of commands with
// passwords in them, at the first attempt and at others.
func TestSecretsAreNotCompressed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var plain atomic.Int32
		r := setUp(t, pipes, spillmongo.Config{}, func(o *options.ClientOptions) {
			o.SetDialer(tap{o.Dialer, func(message []byte) error {
				if bytes.Contains(message, []byte("createUser")) {
					plain.Add(1)
				}
				return nil
			}}).SetCompressors([]string{"zlib"})
		})
		r.script.set("createUser", "OOO")
		// Rejected or served, it was sent.
		_ = r.client.Database("test").RunCommand(t.Context(), bson.D{{Key: "createUser", Value: "u"}, {Key: "pwd", Value: "p"}})
		n := len(r.events.take(t, "createUser"))
		if sent := int(plain.Load()); n < 4 || sent != n {
			t.Errorf("%d attempts, %d of them in the clear", n, sent)
		}
	})
}

// TestDriverStartsNoLoopAroundAChangeStream: the same of what opens a change stream,
// for which the driver has its own loop; and of what opens it the next time.
func TestDriverStartsNoLoopAroundAChangeStream(t *testing.T) {
	for _, last := range "hxcO" {
		for _, timeout := range []time.Duration{time.Minute, 0, -1} {
			bubble(t, func(t *testing.T) {
				r := setUp(t, set, spillmongo.Config{}, func(o *options.ClientOptions) {
					if timeout >= 0 {
						o.SetTimeout(timeout)
					}
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if timeout >= 0 {
					ctx = t.Context()
				}
				r.script.set("aggregate", "OOOOO"+strings.Repeat(string(last), 20))
				_, err := r.coll.Watch(ctx, mongo.Pipeline{})
				if err == nil {
					t.Fatal("success")
				}
				checkCause(t, err)
				if want := map[rune]string{'c': "NetworkError", 'O': bothLabels, 'x': "RetryableWriteError", 'h': "RetryableError"}[last]; labels(err) != want {
					t.Errorf("labels %q, want %q, on %v", labels(err), want, err)
				}
				if n := len(r.script.nodes()); n != 6 {
					t.Errorf("after %c, timeout %v: %d attempts: the driver goes on by itself", last, timeout, n)
				}
				r.script.set("aggregate", "")
				stream, err := r.coll.Watch(ctx, mongo.Pipeline{})
				if err != nil {
					t.Fatal(err)
				}
				_ = stream.Close(ctx) // what counts came before
			})
		}
	}
}

// TestDriverKeepsNoCap: the driver's own loop of the later revision does not keep the
// cap of an overload for the errors after it, which is why it is not used for that
// revision. If this fails with a new driver, doc.go and seam.go have to be looked at.
func TestDriverKeepsNoCap(t *testing.T) {
	for _, row := range []struct {
		timeout  time.Duration
		min, max int // attempts; the cap is 6
	}{
		{0, 2, 5},
		{time.Second, 100, math.MaxInt},
	} {
		bubble(t, func(t *testing.T) {
			r := setUp(t, pipes, spillmongo.Config{})
			o := r.Options().SetMaxAdaptiveRetries(5)
			if row.timeout > 0 {
				o.SetTimeout(row.timeout)
			}
			client := must(mongo.Connect(o))
			defer client.Disconnect(context.Background())
			r.script.set("find", "O"+strings.Repeat("x", 1000)+"s")
			_, err := client.Database("test").Collection("things").Find(t.Context(), bson.D{})
			if n := len(r.script.nodes()); n < row.min || n > row.max {
				t.Errorf("timeout %v: the driver makes %d attempts: %v", row.timeout, n, err)
			}
		})
	}
}
