package drivers

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/mongoproxy"
	"github.com/seed90641741/spillway/spillmongo/mongotest"
)

// work lets a client do some of everything.
func work(t *testing.T, c *mongo.Client) {
	t.Helper()
	ctx := t.Context()
	coll := c.Database("test").Collection("work")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(coll.Drop(ctx))
	var docs []any
	for i := range 250 {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "n", Value: i % 7}})
	}
	_, err := coll.InsertMany(ctx, docs)
	must(err)
	_, err = coll.UpdateMany(ctx, bson.D{{Key: "n", Value: 3}}, bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: true}}}})
	must(err)
	_, err = coll.DeleteOne(ctx, bson.D{{Key: "_id", Value: 0}})
	must(err)
	cursor, err := coll.Find(ctx, bson.D{}, options.Find().SetBatchSize(20))
	must(err)
	var got []bson.M
	must(cursor.All(ctx, &got))
	if len(got) != 249 {
		t.Fatalf("found %d documents, want 249", len(got))
	}
	n, err := coll.CountDocuments(ctx, bson.D{{Key: "x", Value: true}})
	must(err)
	if n != 36 {
		t.Fatalf("counted %d, want 36", n)
	}
}

// transact commits one transaction and aborts another.
func transact(t *testing.T, c *mongo.Client) {
	t.Helper()
	ctx := t.Context()
	coll := c.Database("test").Collection("transactions")
	if err := coll.Drop(ctx); err != nil {
		t.Fatal(err)
	}
	session, err := c.StartSession()
	if err != nil {
		t.Fatal(err)
	}
	defer session.EndSession(ctx)
	for i, fail := range []error{nil, errors.New("no")} {
		_, err = session.WithTransaction(ctx, func(ctx2 context.Context) (any, error) {
			for k := range 3 {
				if _, err := coll.InsertOne(ctx2, bson.D{{Key: "_id", Value: 10*i + k}}); err != nil {
					return nil, err
				}
			}
			return nil, fail
		})
		if !errors.Is(err, fail) {
			t.Fatal(err)
		}
	}
	if n, err := coll.CountDocuments(ctx, bson.D{}); err != nil || n != 3 {
		t.Fatalf("%d documents, error %v; want the 3 of the transaction that was committed", n, err)
	}
}

// TestDriver is the official driver, unmodified, on each topology.
func TestDriver(t *testing.T) {
	for _, test := range []struct {
		name    string
		backend mongotest.Config
		option  func(*options.ClientOptions)
		alone   bool // no transactions
	}{
		{"standalone", mongotest.Config{Topology: mongotest.Standalone}, nil, true},
		{"replica set", mongotest.Config{}, nil, false},
		{"mongos", mongotest.Config{Topology: mongotest.Sharded}, nil, false},
		{"three mongos", mongotest.Config{Topology: mongotest.Sharded, Nodes: 3}, nil, false},
		{
			"three mongos, load balanced", mongotest.Config{Topology: mongotest.Sharded, Nodes: 3},
			func(o *options.ClientOptions) { o.SetLoadBalanced(true) }, false,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := start(t, test.backend, nil)
			var options []func(*options.ClientOptions)
			if test.option != nil {
				options = append(options, test.option)
			}
			c := s.client(options...)
			work(t, c)
			if !test.alone {
				transact(t, c)
			}
		})
	}
}

// TestCompression is the driver with each list of compressors. The proxy closes connections
// whose messages it cannot read, and it cannot read snappy, which it removes from every list.
func TestCompression(t *testing.T) {
	s := start(t, mongotest.Config{}, nil)
	for _, name := range []string{"snappy", "snappy,zlib", "zlib", "zstd"} {
		t.Run(name, func(t *testing.T) {
			c := s.client(func(o *options.ClientOptions) { o.SetCompressors(strings.Split(name, ",")) })
			work(t, c)
			transact(t, c)
			// Longer than any buffer, and not only zeros.
			big := make([]byte, 3<<20)
			for i := range big {
				big[i] = byte(i * i >> 7)
			}
			coll := c.Database("test").Collection("big")
			if _, err := coll.InsertOne(t.Context(), bson.D{{Key: "_id", Value: name}, {Key: "data", Value: big}}); err != nil {
				t.Fatal(err)
			}
			var got struct{ Data []byte }
			if err := coll.FindOne(t.Context(), bson.D{{Key: "_id", Value: name}}).Decode(&got); err != nil || !slices.Equal(got.Data, big) {
				t.Fatalf("got %d bytes, error %v", len(got.Data), err)
			}
			unacknowledged := c.Database("test").Collection("big", options.Collection().SetWriteConcern(writeconcern.Unacknowledged()))
			for range 3 {
				if _, err := unacknowledged.InsertOne(t.Context(), bson.D{}); err != nil {
					t.Fatal(err)
				}
			}
			work(t, c)
		})
	}
	if closed := s.stats().Closed; closed[mongoproxy.Malformed]+closed[mongoproxy.Broken] > 0 {
		t.Errorf("closed: %v", closed)
	}
}

// TestAuthentication is the driver with SCRAM, and who it is seen to be.
func TestAuthentication(t *testing.T) {
	quota := &config.Quota{Customers: map[string]config.Limit{"ann": {Rate: 1}, "bob": {Rate: 1e6}}}
	for _, mechanism := range []string{"SCRAM-SHA-1", "SCRAM-SHA-256", ""} {
		t.Run("mechanism "+mechanism, func(t *testing.T) {
			s := start(t, mongotest.Config{Users: map[string]string{"ann": "a", "bob": "b"}}, func(m *config.Mongo) {
				m.Authentication = true
				m.Quota = quota
				m.Classes = []config.MongoClass{{Customer: "user"}}
			})
			as := func(user, password string) *mongo.Client {
				return s.client(func(o *options.ClientOptions) {
					o.SetAuth(options.Credential{Username: user, Password: password, AuthMechanism: mechanism}).SetMaxAdaptiveRetries(0)
				})
			}
			work(t, as("bob", "b"))
			transact(t, as("bob", "b"))
			if err := as("bob", "x").Ping(t.Context(), nil); err == nil {
				t.Error("a wrong password was accepted")
			}
			ann, rejected := as("ann", "a"), 0
			for range 5 {
				if err := ann.Database("test").RunCommand(t.Context(), bson.D{{Key: "ping", Value: 1}}).Err(); err != nil {
					rejected++
					if !isOverload(err) {
						t.Errorf("got %v", err)
					}
				}
			}
			if rejected < 3 {
				t.Errorf("%d of 5 commands were rejected, want all but the one that the quota lets in", rejected)
			}
		})
	}
}

func isOverload(err error) bool {
	ce, ok := errors.AsType[mongo.CommandError](err)
	return ok && ce.Code == 462 && ce.HasErrorLabel("SystemOverloadedError") && ce.HasErrorLabel("RetryableError")
}

// TestRejection is what the driver sees of the limiter: 462 with both labels, retried by
// itself and not by the proxy; and without RetryableError where retries are not
// allowed.
func TestRejection(t *testing.T) {
	s := start(t, mongotest.Config{}, func(m *config.Mongo) {
		m.Parameters = config.MongoParameters{RequestEnabled: true, RequestRate: 1.0 / 3600, RequestBurst: 3600}
	})
	attempts := 0
	c := s.client(func(o *options.ClientOptions) {
		o.SetMonitor(&event.CommandMonitor{Failed: func(_ context.Context, _ *event.CommandFailedEvent) { attempts++ }})
	})
	ping := func() error { return c.Database("test").RunCommand(t.Context(), bson.D{{Key: "ping", Value: 1}}).Err() }
	if err := ping(); err != nil {
		t.Fatal(err)
	}
	if err := ping(); !isOverload(err) {
		t.Fatalf("got %v", err)
	}
	if attempts != 3 {
		t.Errorf("%d attempts, want the 3 of the driver", attempts)
	}
	no := false
	s.config.Mongo[0].Parameters.AllowRetries = &no
	s.update()
	attempts = 0
	err := ping()
	ce, _ := errors.AsType[mongo.CommandError](err)
	if ce.Code != 462 || !ce.HasErrorLabel("SystemOverloadedError") || ce.HasErrorLabel("RetryableError") || attempts != 1 {
		t.Errorf("got %v with the labels %v after %d attempts", err, ce.Labels, attempts)
	}
	st := s.stats()
	counted := make(map[string]float64)
	for _, c := range st.Counts() {
		counted[c.Name] = c.Value
	}
	if counted["network.ingressRequestRateLimiter.rejectedAdmissions"] != 4 ||
		counted["network.ingressRequestRateLimiter.successfulAdmissions"] != 1 ||
		counted["network.ingressRequestRateLimiter.exemptedAdmissions"] == 0 {
		t.Errorf("counted %v", counted)
	}
}

// TestExemptions checks exemptions of applications and drivers, by prefix.
func TestExemptions(t *testing.T) {
	for _, test := range []struct {
		name   string
		exempt config.MongoParameters
		ok     bool
	}{
		{"nobody", config.MongoParameters{}, false},
		{"application", config.MongoParameters{RequestApplications: []string{"back"}}, true},
		{"another application", config.MongoParameters{RequestApplications: []string{"ackup"}}, false},
		{"driver", config.MongoParameters{RequestApplications: []string{"mongo-go"}}, true},
		{"address", config.MongoParameters{RequestExemptions: []string{"127.0.0.1"}}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := start(t, mongotest.Config{}, func(m *config.Mongo) {
				m.Parameters = test.exempt
				m.Parameters.RequestEnabled, m.Parameters.RequestRate, m.Parameters.RequestBurst = true, 1.0/3600, 3600
			})
			c := s.client(func(o *options.ClientOptions) { o.SetAppName("backup").SetMaxAdaptiveRetries(0) })
			var err error
			for range 3 {
				err = c.Database("test").RunCommand(t.Context(), bson.D{{Key: "ping", Value: 1}}).Err()
			}
			if (err == nil) != test.ok {
				t.Errorf("got the error %v", err)
			}
		})
	}
}

// TestModes: a limiter that observes counts, and lets all through.
func TestModes(t *testing.T) {
	for mode, want := range map[config.Mode]struct {
		ok       bool
		rejected uint64
	}{"off": {true, 0}, "observe": {true, 4}, "enforce": {false, 4}} {
		t.Run(string(mode), func(t *testing.T) {
			s := start(t, mongotest.Config{}, func(m *config.Mongo) {
				m.RequestMode = mode
				m.Parameters = config.MongoParameters{RequestEnabled: true, RequestRate: 1.0 / 3600, RequestBurst: 3600}
			})
			c := s.client(func(o *options.ClientOptions) { o.SetMaxAdaptiveRetries(0) })
			var err error
			for range 5 {
				err = c.Database("test").RunCommand(t.Context(), bson.D{{Key: "ping", Value: 1}}).Err()
			}
			if got := s.stats().Gate.RateLimit.RejectedTotal; (err == nil) != want.ok || got != want.rejected {
				t.Errorf("%d rejected, error %v", got, err)
			}
		})
	}
}

// TestConnectionLimiter: a full queue closes without a reply, to which the driver puts
// the labels itself.
func TestConnectionLimiter(t *testing.T) {
	s := start(t, mongotest.Config{}, func(m *config.Mongo) {
		m.Parameters = config.MongoParameters{ConnectionEnabled: true, ConnectionRate: 1.0 / 3600, ConnectionBurst: 2 * 3600}
	})
	c := s.client(func(o *options.ClientOptions) {
		o.SetMaxAdaptiveRetries(0).SetServerSelectionTimeout(300 * time.Millisecond)
	})
	err := c.Ping(t.Context(), nil)
	for range 3 {
		if err == nil {
			err = s.client(func(o *options.ClientOptions) { o.SetServerSelectionTimeout(300 * time.Millisecond) }).Ping(t.Context(), nil)
		}
	}
	if st := s.stats(); err == nil || st.Connections.Rate.RejectedTotal == 0 || st.Connections.Rate.AdmittedTotal != 2 {
		t.Errorf("error %v, connections %+v", err, st.Connections)
	}
}

// TestShedding has the shedder look at everything, and nothing to reject.
func TestShedding(t *testing.T) {
	for _, mode := range []config.Mode{"observe", "enforce"} {
		s := start(t, mongotest.Config{}, func(m *config.Mongo) { m.Shed.Mode = mode })
		work(t, s.client())
		if n := s.stats().Gate.Shed.Classes; n[spillway.Critical.Index()].AdmittedTotal == 0 {
			t.Errorf("mode %s: %+v", mode, n)
		}
	}
}
