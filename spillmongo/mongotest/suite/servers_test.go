package suite_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"

	"github.com/seed90641741/spillway/spillmongo"
	"github.com/seed90641741/spillway/spillmongo/mongotest"
)

var (
	set      = mongotest.Config{Pipes: true, Nodes: 2}
	mongoses = mongotest.Config{Pipes: true, Nodes: 2, Topology: mongotest.Sharded}
	balanced = mongotest.Config{Pipes: true, Nodes: 2, Topology: mongotest.LoadBalanced}
)

// TestRetargeting: a retry goes to the other server, where there is one that may
// serve it.
func TestRetargeting(t *testing.T) {
	for _, row := range []struct {
		name       string
		deployment mongotest.Config
		config     spillmongo.Config
		command    string
		steps      string
		change     bool // of server at the first retry
	}{
		{"a read of a set", set, spillmongo.Config{}, "find", "OOOs", true},
		{"a write to a set", set, spillmongo.Config{}, "insert", "OOs", false},
		{"a read by a mongos", mongoses, spillmongo.Config{}, "find", "Os", true},
		{"a write by a mongos", mongoses, spillmongo.Config{}, "insert", "OOs", true},
		{"another error", mongoses, spillmongo.Config{}, "insert", "xs", true},
		{"another error of a mongos that stays known", mongoses, spillmongo.Config{}, "find", "hs", true},
		{"another error of a set", set, spillmongo.Config{}, "find", "hs", false},
		{"the later revision", mongoses, spillmongo.Config{Revision: "2026-07"}, "update", "OOs", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := setUp(t, row.deployment, row.config, func(o *options.ClientOptions) {
					o.SetReadPreference(readpref.PrimaryPreferred())
				})
				if err := r.client.Ping(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second) // until all servers are known
				for range 5 {
					r.script.set(row.command, row.steps)
					if err := operations[row.command](t.Context(), r); err != nil {
						t.Fatal(err)
					}
					nodes := r.script.nodes()
					if len(nodes) != len(row.steps) {
						t.Fatalf("attempts at %v", nodes)
					}
					if changed := nodes[0] != nodes[1]; row.config.Revision == "" && changed != row.change {
						t.Errorf("attempts at %v, change of server wanted: %v", nodes, row.change)
					}
				}
				if s := r.retrier.Stats(time.Now()); row.steps[0] == 'O' && row.config.Revision == "" && (s.RetargetedTotal >= 5) != row.change {
					t.Errorf("%d retargeted", s.RetargetedTotal)
				}
			})
		})
	}
}

// insertSome makes a collection of five documents.
func (r *rig) insertSome() {
	r.t.Helper()
	for i := range 5 {
		must(r.coll.InsertOne(context.Background(), bson.D{{Key: "_id", Value: i}}))
	}
}

// TestOverloadedGetMore: the cursor goes on after it, at the server where it lives,
// even if its first command had gone to another one before.
func TestOverloadedGetMore(t *testing.T) {
	for name, mc := range map[string]mongotest.Config{"set": set, "mongoses": mongoses, "load balanced": balanced} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := setUp(t, mc, spillmongo.Config{})
				r.insertSome()
				for _, steps := range []string{"OOOss", "OsOOs", "OOOOOsOOOOOs"} {
					r.script.set("aggregate", "Os")
					cur := must(r.coll.Aggregate(t.Context(), mongo.Pipeline{}, options.Aggregate().SetBatchSize(2)))
					home := r.script.nodes()
					r.script.set("getMore", steps)
					var docs []bson.D
					if err := cur.All(t.Context(), &docs); err != nil || len(docs) != 5 {
						t.Fatalf("%s: %d documents, %v", steps, len(docs), err)
					}
					for _, n := range r.script.nodes() {
						if n != home[len(home)-1] {
							t.Errorf("getMore at %v, the cursor is at %d", r.script.nodes(), home[len(home)-1])
						}
					}
					if n := len(r.events.take(t, "getMore")); n != len(steps) {
						t.Errorf("%d getMores for %s", n, steps)
					}
				}
			})
		})
	}
}

// TestPinnedConnection: behind a load balancer, where the server is known by the
// connection, a cursor keeps its connection while it waits.
func TestPinnedConnection(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var returned atomic.Int32
		r := setUp(t, balanced, spillmongo.Config{}, func(o *options.ClientOptions) {
			o.SetPoolMonitor(&event.PoolMonitor{Event: func(e *event.PoolEvent) {
				if e.Type == event.ConnectionCheckedIn {
					returned.Add(1)
				}
			}})
		})
		r.insertSome()
		cur := must(r.coll.Aggregate(t.Context(), mongo.Pipeline{}, options.Aggregate().SetBatchSize(2)))
		before := returned.Load()
		r.script.set("getMore", "OOOs")
		for range 4 {
			if !cur.Next(t.Context()) {
				t.Fatal(cur.Err())
			}
		}
		if n := returned.Load() - before; n != 0 {
			t.Errorf("a connection went back to the pool %d times", n)
		}
		if err := cur.Close(t.Context()); err != nil || returned.Load() == before {
			t.Errorf("after the end of the cursor: %v, %d returned", err, returned.Load()-before)
		}
	})
}

// TestPinnedConnectionIsReleased: a commit that has lost its connection does not keep
// another one, and can be sent once more.
func TestPinnedConnectionIsReleased(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var out, cleared atomic.Int32
		r := setUp(t, balanced, spillmongo.Config{}, func(o *options.ClientOptions) {
			o.SetPoolMonitor(&event.PoolMonitor{Event: func(e *event.PoolEvent) {
				switch e.Type {
				case event.ConnectionCheckedOut:
					out.Add(1)
				case event.ConnectionCheckedIn:
					out.Add(-1)
				case event.ConnectionPoolCleared:
					cleared.Add(1)
				}
			}})
		})
		s := must(r.client.StartSession())
		if err := s.StartTransaction(); err != nil {
			t.Fatal(err)
		}
		ctx := mongo.NewSessionContext(t.Context(), s)
		must(r.coll.InsertOne(ctx, bson.D{}))
		if out.Load() != 1 {
			t.Errorf("%d connections in a transaction", out.Load())
		}
		for _, steps := range []string{"cs", "s", "Os"} {
			r.script.set("commitTransaction", steps)
			if err := s.CommitTransaction(ctx); err != nil || len(r.script.nodes()) != len(steps) {
				t.Errorf("%s: %d attempts, %v", steps, len(r.script.nodes()), err)
			}
			if out.Load() != 0 || cleared.Load() != 1 {
				t.Errorf("%s: %d connections are out, %d pools were cleared", steps, out.Load(), cleared.Load())
			}
		}
		s.EndSession(t.Context())
		if err := r.client.Ping(t.Context(), nil); err != nil || out.Load() != 0 {
			t.Errorf("%v, %d connections are out", err, out.Load())
		}
	})
}

// transact runs a transaction with two inserts.
func (r *rig) transact(ctx context.Context) error {
	s := must(r.client.StartSession())
	defer s.EndSession(ctx)
	if err := s.StartTransaction(); err != nil {
		return err
	}
	ctx = mongo.NewSessionContext(ctx, s)
	for i := range 2 {
		if _, err := r.coll.InsertOne(ctx, bson.D{{Key: "_id", Value: i}}); err != nil {
			return err
		}
	}
	return s.CommitTransaction(ctx)
}

// TestTransaction: whichever of its commands is rejected, a transaction commits, once.
func TestTransaction(t *testing.T) {
	for name, mc := range map[string]mongotest.Config{"set": set, "mongoses": mongoses, "load balanced": balanced} {
		for _, script := range [][2]string{
			{"insert", "OOs"}, {"insert", "sOs"}, {"insert", "OsOs"},
			{"commitTransaction", "Os"}, {"commitTransaction", "OOOOOs"}, {"commitTransaction", "Oxs"}, {"commitTransaction", "cs"}, {"commitTransaction", "OcOs"},
		} {
			t.Run(fmt.Sprint(name, script), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					r := setUp(t, mc, spillmongo.Config{})
					if err := r.client.Database("test").CreateCollection(t.Context(), "things"); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Second) // until all servers are known
					r.script.set(script[0], script[1])
					if err := r.transact(t.Context()); err != nil {
						t.Fatal(err)
					}
					if n := must(r.coll.CountDocuments(t.Context(), bson.D{})); n != 2 {
						t.Errorf("%d documents", n)
					}
					r.checkTransaction(script)
				})
			})
		}
	}
}

// checkTransaction expects each attempt at a command to say what the first said, and
// a commit that may have got through to wait for a majority when it is sent again.
func (r *rig) checkTransaction(script [2]string) {
	r.t.Helper()
	var numbers []string
	for _, a := range r.events.take(r.t, script[0]) {
		starts, err := a.command.LookupErr("startTransaction")
		if b, _ := starts.BooleanOK(); script[0] == "insert" && b != (len(numbers) == 0 || numbers[0] == a.command.Lookup("documents").String()) {
			r.t.Errorf("startTransaction %v (%v) in %v", b, err, a.command)
		}
		if script[0] == "insert" {
			numbers = append(numbers, a.command.Lookup("documents").String())
			continue
		}
		w := a.command.Lookup("writeConcern", "w")
		numbers = append(numbers, w.String())
	}
	want := len(script[1])
	if script[0] == "insert" {
		want += 2 - strings.Count(script[1], "s")
	}
	if len(numbers) != want || len(r.script.nodes()) != want {
		r.t.Errorf("%d attempts at %s, %d at the server, want %d", len(numbers), script[0], len(r.script.nodes()), want)
	}
	if nodes := slices.Compact(r.script.nodes()); script[0] == "insert" && len(nodes) > 1 {
		r.t.Errorf("a transaction at %v", r.script.nodes())
	}
	if script[0] != "commitTransaction" {
		return
	}
	majority := false
	for i, got := range numbers {
		if (got == `"majority"`) != majority {
			r.t.Errorf("commit %d has the write concern %s, majority wanted: %v", i, got, majority)
		}
		majority = majority || script[1][i] != 'O'
	}
}

// TestEndOfTransactionIgnoresRetryWrites: both of its ends are retried in any case.
func TestEndOfTransactionIgnoresRetryWrites(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := setUp(t, set, spillmongo.Config{}, func(o *options.ClientOptions) { o.SetRetryWrites(false).SetRetryReads(false) })
		if err := r.client.Database("test").CreateCollection(t.Context(), "things"); err != nil {
			t.Fatal(err)
		}
		r.script.set("commitTransaction", "OOs")
		if err := r.transact(t.Context()); err != nil {
			t.Error(err)
		}
		r.script.set("insert", "Os")
		if err := r.transact(t.Context()); labels(err) == "" {
			t.Errorf("an insert was retried: %v", err)
		}
	})
}

// TestLabelsOfTheLastError: all labels that the server and the driver give the last error
// reach the caller, though the driver must not act on them.
func TestLabelsOfTheLastError(t *testing.T) {
	for _, row := range []struct {
		command, steps, want string
		attempts             int
	}{
		{"find", "OOOOOO", bothLabels, 6},
		{"insert", "OOOOOO", bothLabels, 6},
		{"insert", "WWWWWW", bothLabels + " RetryableWriteError", 6},
		{"insert", "xx", "RetryableWriteError", 2},
		{"insert", "OOOOOx", "RetryableWriteError", 6},
		{"insert", "cc", "RetryableWriteError NetworkError", 2},
		{"insert", "OOOOOc", "RetryableWriteError NetworkError", 6},
		{"update", "Oc", "NetworkError", 2},
		{"find", "cc", "NetworkError", 2},
		{"commitTransaction", "OOOOOO", bothLabels, 6},
		{"commitTransaction", "xx", "RetryableWriteError UnknownTransactionCommitResult", 2},
		{"commitTransaction", "cc", "RetryableWriteError NetworkError UnknownTransactionCommitResult", 2},
		{"insert", "xE", "RetryableWriteError", 2},
		{"insert", "ww", "RetryableWriteError", 2},
		{"insert", "OOOOOw", "RetryableWriteError", 6},
		{"commitTransaction", "ww", "RetryableWriteError UnknownTransactionCommitResult", 2},
	} {
		for name, mc := range map[string]mongotest.Config{"set": set, "mongoses": mongoses, "load balanced": balanced} {
			t.Run(name+" "+row.command+" "+row.steps, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					r := setUp(t, mc, spillmongo.Config{})
					if err := r.client.Database("test").CreateCollection(t.Context(), "things"); err != nil {
						t.Fatal(err)
					}
					r.script.set(row.command, row.steps)
					var err error
					if row.command == "commitTransaction" {
						err = r.transact(t.Context())
					} else {
						err = operations[row.command](t.Context(), r)
					}
					if got := labels(err); got != row.want {
						t.Errorf("labels %q, want %q, on %v", got, row.want, err)
					}
					got := r.events.take(t, row.command)
					if len(got) != row.attempts {
						t.Fatalf("%d attempts, want %d", len(got), row.attempts)
					}
					for i, a := range got {
						if a.failure == nil && row.steps[i] != 'w' {
							t.Error("an attempt that did not fail")
						}
					}
					checkCause(t, err)
				})
			})
		}
	}
}

// TestEndsOfTransactionsAreCapped: the ends of transactions are commands like others
// here, wherever they go and with whatever timeout.
func TestEndsOfTransactionsAreCapped(t *testing.T) {
	for name, mc := range map[string]mongotest.Config{"set": set, "mongoses": mongoses, "load balanced": balanced} {
		for _, command := range []string{"commitTransaction", "abortTransaction"} {
			for _, last := range "xcOw" {
				for _, timeout := range []time.Duration{-1, 0, time.Minute} {
					bubble(t, func(t *testing.T) {
						r := setUp(t, mc, spillmongo.Config{}, func(o *options.ClientOptions) {
							if timeout >= 0 {
								o.SetTimeout(timeout)
							}
						})
						if err := r.client.Database("test").CreateCollection(t.Context(), "things"); err != nil {
							t.Fatal(err)
						}
						r.script.set(command, "OOOO"+strings.Repeat(string(last), 20))
						err := r.client.UseSession(t.Context(), func(ctx context.Context) error {
							s := mongo.SessionFromContext(ctx)
							if err := s.StartTransaction(); err != nil {
								return err
							}
							if _, err := r.coll.InsertOne(ctx, bson.D{}); err != nil {
								t.Error(err)
							}
							if command == "abortTransaction" {
								return s.AbortTransaction(ctx)
							}
							err := s.CommitTransaction(ctx)
							if err == nil {
								t.Error("committed")
							}
							return nil
						})
						if n := len(r.script.nodes()); n != 6 || err != nil {
							t.Errorf("%s, %s, timeout %v, then %c: %d attempts, %v", name, command, timeout, last, n, err)
						}
					})
				}
			}
		}
	}
}

// TestNoWritesPerformed: an error that says so hides none that may have written.
func TestNoWritesPerformed(t *testing.T) {
	for steps, want := range map[string]int{"xE": 91, "EE": 11600, "OxEEEE": 91, "WWWWWW": 462, "OWWWWW": 462, "xWWWWW": 91} {
		bubble(t, func(t *testing.T) {
			r := setUp(t, set, spillmongo.Config{})
			r.script.set("insert", steps)
			err := operations["insert"](t.Context(), r)
			var server mongo.ServerError
			if !errors.As(err, &server) || !server.HasErrorCode(want) {
				t.Errorf("%s: %v, want code %d", steps, err, want)
			}
			all := r.events.take(t, "insert")
			if len(all) != len(steps) {
				t.Fatalf("%s: %d attempts", steps, len(all))
			}
			last := all[len(all)-1].failure
			if e, ok := errors.AsType[driver.Error](last); !ok || int(e.Code) != map[byte]int{'E': 11600, 'W': 462}[steps[len(steps)-1]] {
				t.Errorf("%s: the last event shows %v", steps, last)
			}
		})
	}
}

// TestErrorsStayWithTheirServers: an error that is returned in place of the last one is
// not held against the server of the last one.
func TestErrorsStayWithTheirServers(t *testing.T) {
	for _, command := range []string{"find", "insert"} {
		bubble(t, func(t *testing.T) {
			var mu sync.Mutex
			var cleared []string
			r := setUp(t, mongotest.Config{Pipes: true, Nodes: 2, Topology: mongotest.Sharded}, spillmongo.Config{}, func(o *options.ClientOptions) {
				o.SetPoolMonitor(&event.PoolMonitor{Event: func(e *event.PoolEvent) {
					if e.Type == event.ConnectionPoolCleared {
						mu.Lock()
						defer mu.Unlock()
						cleared = append(cleared, e.Address)
					}
				}})
			})
			r.script.set(command, "cWWWWW")
			if err := operations[command](t.Context(), r); !mongo.IsNetworkError(err) {
				t.Errorf("%s: %v, want the error of the first attempt", command, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if nodes := r.script.nodes(); len(cleared) != 1 || len(nodes) != 6 {
				t.Errorf("%s: pools of %v were cleared in attempts at the nodes %v, want that of the first", command, cleared, nodes)
			}
		})
	}
}
