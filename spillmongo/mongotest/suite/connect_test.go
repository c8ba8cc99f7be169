package suite_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed90641741/spillway/spillmongo"
	"github.com/seed90641741/spillway/spillmongo/mongotest"
)

// A gate is a dialer that closes connections of the pool, which it tells from those
// of the monitors by their order, as a limiter of new connections does.
type gate struct {
	options.ContextDialer

	mu     sync.Mutex
	closed bool
	dialed int
}

func (g *gate) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := g.ContextDialer.DialContext(ctx, network, address)
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil && g.closed {
		g.dialed++
		c.Close()
	}
	return c, err
}

func (g *gate) shut(closed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = closed
}

// shutOut returns a rig that knows its server, and from now on gets no connection to it
// until the gate is opened.
func shutOut(t *testing.T, c spillmongo.Config) (*rig, *gate) {
	t.Helper()
	var g *gate
	r := setUp(t, pipes, c, func(o *options.ClientOptions) {
		g = &gate{ContextDialer: o.Dialer}
		o.SetDialer(g)
	})
	time.Sleep(time.Second) // the time of the bubble, in which the server becomes known
	synctest.Wait()
	g.shut(true)
	return r, g
}

// TestConnectionRefused: a connection that is closed before its handshake is an
// overload, and is retried like one, under the same cap as the command after it.
func TestConnectionRefused(t *testing.T) {
	for _, row := range []struct {
		name     string
		open     time.Duration // until connections are let in
		steps    string        // of the command then
		attempts int           // of the command
		took     time.Duration
		tokens   float64
	}{
		{"for good", time.Hour, "", 0, 3100 * time.Millisecond, 500 - 5},
		{"for a while", time.Second, "s", 1, 1500 * time.Millisecond, 500 - 4 + 1.1},
		{"and then the command", 50 * time.Millisecond, "OOs", 3, 700 * time.Millisecond, 500 - 3 + 1.1},
		{"and then the command for good", 50 * time.Millisecond, "OOOOOO", 5, 3100 * time.Millisecond, 500 - 5},
	} {
		t.Run(row.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				b := bucket(500)
				r, g := shutOut(t, spillmongo.Config{Budget: b, Rand: fixed(1)})
				time.AfterFunc(row.open, func() { g.shut(false) })
				r.script.set("find", row.steps)
				start := time.Now()
				_, err := r.coll.Find(t.Context(), bson.D{})
				if good := strings.HasSuffix(row.steps, "s"); good != (err == nil) {
					t.Errorf("success %v wanted: %v", good, err)
				}
				if err != nil && !strings.HasPrefix(labels(err), bothLabels) {
					t.Errorf("labels %q on %v", labels(err), err)
				}
				if n := len(r.events.take(t, "find")); n != row.attempts {
					t.Errorf("%d attempts, want %d", n, row.attempts)
				}
				if took := time.Since(start).Round(time.Millisecond); took != row.took {
					t.Errorf("took %v, want %v", took, row.took)
				}
				if got := b.Stats(time.Now()).Tokens; got < row.tokens-1e-9 || got > row.tokens+1e-9 {
					t.Errorf("%v tokens, want %v", got, row.tokens)
				}
			})
		})
	}
}

// TestConnectionRefusedAndNoTime: there is no wait for a connection that would come too late,
// and nothing is charged for it.
func TestConnectionRefusedAndNoTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := bucket(500)
		r, _ := shutOut(t, spillmongo.Config{Budget: b, Rand: fixed(1)})
		ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
		defer cancel()
		start := time.Now()
		if _, err := r.coll.Find(ctx, bson.D{}); !strings.HasPrefix(labels(err), bothLabels) {
			t.Errorf("labels %q on %v", labels(err), err)
		}
		if took, got := time.Since(start), b.Stats(time.Now()).Tokens; took != 100*time.Millisecond || got != 499 {
			t.Errorf("took %v, %v tokens; want 100 ms and 499, as the third is due in 300 ms", took, got)
		}
	})
}

// TestConnectionRefusedWithin: the same between the attempts at a command.
func TestConnectionRefusedWithin(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var g *gate
		r := setUp(t, pipes, spillmongo.Config{Rand: fixed(1)}, func(o *options.ClientOptions) {
			g = &gate{ContextDialer: o.Dialer}
			o.SetDialer(g).SetMaxConnIdleTime(50 * time.Millisecond)
		})
		if err := r.client.Ping(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		r.script.set("find", "Os")
		time.AfterFunc(10*time.Millisecond, func() { g.shut(true) })
		time.AfterFunc(250*time.Millisecond, func() { g.shut(false) })
		if _, err := r.coll.Find(t.Context(), bson.D{}); err != nil {
			t.Fatal(err)
		}
		if n := len(r.events.take(t, "find")); n != 2 || g.dialed == 0 {
			t.Errorf("%d attempts, %d connections refused", n, g.dialed)
		}
		if s := r.retrier.Stats(time.Now()); s.OverloadsTotal < 2 {
			t.Errorf("%+v", s)
		}
	})
}

// TestCursorWaitsForItsServer: a cursor whose server refuses connections for a while
// is not sent to another one.
func TestCursorWaitsForItsServer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var g *gate
		r := setUp(t, mongoses, spillmongo.Config{Rand: fixed(1)}, func(o *options.ClientOptions) {
			g = &gate{ContextDialer: o.Dialer}
			o.SetDialer(g).SetMaxConnIdleTime(50 * time.Millisecond)
		})
		r.insertSome()
		for range 5 {
			r.script.set("aggregate", "")
			cur := must(r.coll.Aggregate(t.Context(), mongo.Pipeline{}, options.Aggregate().SetBatchSize(3)))
			home := r.script.nodes()[0]
			time.Sleep(100 * time.Millisecond)
			r.script.set("getMore", "")
			g.shut(true)
			time.AfterFunc(250*time.Millisecond, func() { g.shut(false) })
			var docs []bson.D
			if err := cur.All(t.Context(), &docs); err != nil || len(docs) != 5 {
				t.Fatalf("%d documents, %v", len(docs), err)
			}
			if got := r.script.nodes(); len(got) != 1 || got[0] != home {
				t.Errorf("getMore at %v, the cursor is at %d", got, home)
			}
		}
		if g.dialed < 5 {
			t.Errorf("%d connections refused", g.dialed)
		}
	})
}

// hellos returns an observer of handshakes, and what they said.
func hellos() (observe func(mongotest.Command), said func() []bson.RawValue) {
	var mu sync.Mutex
	var all []bson.RawValue
	observe = func(c mongotest.Command) {
		if v, err := c.Body.LookupErr("backpressure"); err == nil && c.Body.Lookup("client").Type != 0 {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, bson.RawValue{Type: v.Type, Value: append([]byte{}, v.Value...)})
		}
	}
	return observe, func() []bson.RawValue {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

func TestHandshake(t *testing.T) {
	for revision, want := range map[string]any{"": true, "2026-07": "2"} {
		observe, said := hellos()
		r := setUp(t, mongotest.Config{Observe: observe}, spillmongo.Config{Revision: revision})
		if err := r.client.Ping(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if len(said()) < 2 {
			t.Errorf("revision %q: %d handshakes", revision, len(said()))
		}
		for _, v := range said() {
			if !v.Equal(value(want)) {
				t.Errorf("revision %q: backpressure is %v, want %v", revision, v, want)
			}
		}
	}
}

// TestHandshakeWithTLS: pooled connections say it through TLS as well.
func TestHandshakeWithTLS(t *testing.T) {
	observe, said := hellos()
	d := mongotest.Start(t, mongotest.Config{Topology: mongotest.LoadBalanced, Observe: observe})
	address, pool := encrypt(t, strings.TrimSuffix(strings.TrimPrefix(d.URI(), "mongodb://"), "/?loadBalanced=true"))
	o := options.Client().ApplyURI("mongodb://" + address + "/?loadBalanced=true").SetTLSConfig(&tls.Config{RootCAs: pool})
	client := must(mongo.Connect(must(spillmongo.New(o, spillmongo.Config{})).ClientOptions()))
	defer client.Disconnect(context.Background())
	if err := client.Ping(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if all := said(); len(all) == 0 || !all[0].Equal(value(true)) {
		t.Errorf("backpressure is %v", all)
	}
}

// encrypt listens with TLS and passes on to address.
func encrypt(t *testing.T, address string) (string, *x509.CertPool) {
	t.Helper()
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der := must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))
	pool := x509.NewCertPool()
	pool.AddCert(must(x509.ParseCertificate(der)))
	l := must(tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}))
	var work sync.WaitGroup
	t.Cleanup(work.Wait)
	t.Cleanup(func() { l.Close() })
	work.Go(func() {
		for {
			front, err := l.Accept()
			if err != nil {
				return
			}
			back := must(net.Dial("tcp", address))
			work.Go(func() { io.Copy(back, front); back.Close() })
			work.Go(func() { io.Copy(front, back); front.Close() })
		}
	})
	return l.Addr().String(), pool
}

// TestNothingIsLeft: after Disconnect, neither goroutines nor connections are left,
// with all ways that a command can end behind it.
func TestNothingIsLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	d := must(mongotest.New(mongotest.Config{Nodes: 2}))
	r := &rig{Deployment: d, t: t}
	retrier := must(spillmongo.New(d.Options().SetMonitor(new(recorder).monitor()), spillmongo.Config{AdaptiveRetries: true, Rand: fixed(0.01)}))
	client := must(mongo.Connect(retrier.ClientOptions()))
	r.client, r.coll = client, client.Database("test").Collection("things")
	r.insertSome()
	for i := range 2 {
		r.fail(i, bson.D{{Key: "activationProbability", Value: 0.5}}, overload("find", "getMore", "insert", "aggregate"))
	}
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			for i := range 20 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Millisecond)
				if cur, err := r.coll.Aggregate(ctx, mongo.Pipeline{}, options.Aggregate().SetBatchSize(2)); err == nil {
					var docs []bson.D
					_ = cur.All(ctx, &docs)
				}
				_ = operations["insert"](ctx, r)
				cancel()
			}
		})
	}
	work.Wait()
	if err := client.Disconnect(context.Background()); err != nil {
		t.Error(err)
	}
	open := func() (n int) {
		for _, node := range d.Nodes() {
			n += node.Stats().Connections
		}
		return n
	}
	settled(t, func() bool { return open() == 0 }, "connections are open at the server")
	d.Close()
	settled(t, func() bool { return runtime.NumGoroutine() <= before }, "goroutines are left")
}

// settled waits for what goes on elsewhere to end.
func settled(t *testing.T, done func() bool, complaint string) {
	t.Helper()
	for range 500 {
		if done() {
			return
		}
		<-time.After(10 * time.Millisecond)
	}
	buf := make([]byte, 1<<16)
	t.Errorf("%s:\n%s", complaint, buf[:runtime.Stack(buf, true)])
}

// TestConnectionGoesBackBeforeTheWait: a pool of one serves others during a backoff.
func TestConnectionGoesBackBeforeTheWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := setUp(t, pipes, spillmongo.Config{Rand: fixed(1)}, func(o *options.ClientOptions) { o.SetMaxPoolSize(1) })
		r.script.set("find", "OOOs")
		var work sync.WaitGroup
		work.Go(func() {
			if _, err := r.coll.Find(t.Context(), bson.D{}); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(150 * time.Millisecond)
		start := time.Now()
		if err := r.client.Ping(t.Context(), nil); err != nil || time.Since(start) != 0 {
			t.Errorf("a ping during the wait: %v, after %v", err, time.Since(start))
		}
		work.Wait()
	})
}

// TestCallerLeavesDuringTheWait: the caller gets the server's answer, the retry is paid
// back, and each attempt has one end.
func TestCallerLeavesDuringTheWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := bucket(10)
		r := setUp(t, pipes, spillmongo.Config{Budget: b, Rand: fixed(1)})
		for command, f := range operations {
			r.script.set(command, "OOO")
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(150*time.Millisecond, cancel)
			start, had := time.Now(), b.Stats(time.Now()).Tokens
			err := f(ctx, r)
			if labels(err) != bothLabels {
				t.Errorf("%s: %v", command, err)
			}
			if n, took := len(r.events.take(t, command)), time.Since(start); n != 2 || took > 160*time.Millisecond {
				t.Errorf("%s: %d attempts in %v", command, n, took)
			}
			if got := b.Stats(time.Now()).Tokens; got != had-1 {
				t.Errorf("%s: %v tokens of %v are left", command, got, had)
			}
		}
	})
}

// TestCallerLeavesDuringTheRetry: the retry is paid, and a caller who has canceled it is
// no sign of a healthy server. A deadline is an error like others.
func TestCallerLeavesDuringTheRetry(t *testing.T) {
	for deadline, want := range map[bool]float64{false: 9, true: 10} {
		bubble(t, func(t *testing.T) {
			b := bucket(10)
			r := setUp(t, pipes, spillmongo.Config{Budget: b, Rand: fixed(1)})
			r.script.set("find", "Ob")
			ctx, cancel := context.WithCancel(t.Context())
			if deadline {
				ctx, cancel = context.WithTimeout(t.Context(), 150*time.Millisecond)
			} else {
				time.AfterFunc(150*time.Millisecond, cancel)
			}
			defer cancel()
			if _, err := r.coll.Find(ctx, bson.D{}); err == nil || len(r.script.nodes()) != 2 {
				t.Errorf("%v after %d attempts", err, len(r.script.nodes()))
			}
			if got := b.Stats(time.Now()).Tokens; got != want {
				t.Errorf("deadline %v: %v tokens, want %v", deadline, got, want)
			}
		})
	}
}

// TestNoServerForTheRetry: the error of the server is returned rather than the error that no
// server is available for the retry.
func TestNoServerForTheRetry(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := setUp(t, pipes, spillmongo.Config{Rand: fixed(1)}, func(o *options.ClientOptions) { o.SetServerSelectionTimeout(time.Second) })
		r.script.set("insert", "O")
		time.AfterFunc(50*time.Millisecond, func() { r.SetPrimary(-1) })
		_, err := r.coll.InsertOne(t.Context(), bson.D{})
		if labels(err) != bothLabels {
			t.Error(err)
		}
		if n := len(r.events.take(t, "insert")); n != 1 {
			t.Errorf("%d attempts", n)
		}
	})
}
