package suite_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/spillmongo"
	"github.com/seed90641741/spillway/spillmongo/mongotest"
)

var pipes = mongotest.Config{Pipes: true}

// TestProseBackoff is prose test 1: a random factor of nearly one costs the sum of
// five backoffs, 3.1 s, more than a factor of zero.
func TestProseBackoff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		took := func(jitter float64) time.Duration {
			r := setUp(t, pipes, spillmongo.Config{Rand: fixed(jitter)})
			data := overload("insert")
			data[1].Value = 2
			r.fail(0, "alwaysOn", data)
			start := time.Now()
			if _, err := r.coll.InsertOne(t.Context(), bson.D{{Key: "a", Value: 1}}); err == nil {
				t.Error("inserted")
			}
			if n := len(r.events.take(t, "insert")); n != 6 {
				t.Errorf("%d attempts", n)
			}
			return time.Since(start)
		}
		without, with := took(0), took(math.Nextafter(1, 0))
		if d := with - without; d < 2100*time.Millisecond || d < 3099*time.Millisecond || d > 3101*time.Millisecond {
			t.Errorf("with backoff %v, without %v; the difference must be 3.1 s", with, without)
		}
	})
}

// TestProseCapacity is prose test 2: the bucket starts full, at 1000 tokens, and a
// success does not lift it higher.
func TestProseCapacity(t *testing.T) {
	r := setUp(t, mongotest.Config{}, spillmongo.Config{AdaptiveRetries: true})
	for range 2 {
		if b := r.retrier.Stats(time.Now()).Budget; b.Tokens != 1000 || b.Capacity != 1000 {
			t.Fatalf("%v of %v tokens", b.Tokens, b.Capacity)
		}
		if err := r.client.Ping(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
}

// TestProseMaxRetries is prose test 3.
func TestProseMaxRetries(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := setUp(t, pipes, spillmongo.Config{})
		r.fail(0, "alwaysOn", overload("find"))
		_, err := r.coll.Find(t.Context(), bson.D{})
		if got := labels(err); got != bothLabels {
			t.Errorf("labels %q on %v", got, err)
		}
		if n := len(r.events.take(t, "find")); n != 6 {
			t.Errorf("%d commands, want 6", n)
		}
	})
}

// TestProseExhaustion is prose test 4: two tokens pay for two retries.
func TestProseExhaustion(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := bucket(2)
		r := setUp(t, pipes, spillmongo.Config{AdaptiveRetries: true, Budget: b})
		r.fail(0, times(3), overload("find"))
		_, err := r.coll.Find(t.Context(), bson.D{})
		if got := labels(err); got != bothLabels {
			t.Errorf("labels %q on %v", got, err)
		}
		if n := len(r.events.take(t, "find")); n != 3 {
			t.Errorf("%d commands, want 3", n)
		}
	})
}

// TestTokens plays each row of the file of facts.
func TestTokens(t *testing.T) {
	var facts struct {
		Cases []struct {
			Name       string
			Start, End float64
			Events     []string
		} `json:"token_bucket_cases"`
	}
	vectors(t, "mongodb_backpressure.json", &facts)
	if len(facts.Cases) == 0 {
		t.Fatal("no cases")
	}
	bubble(t, func(t *testing.T) {
		b := bucket(1000)
		r := setUp(t, pipes, spillmongo.Config{Budget: b})
		for _, c := range facts.Cases {
			b.Deposit("", 1000)
			b.Withdraw(time.Time{}, "", 1000-c.Start)
			steps, retries := "", 0
			for _, e := range c.Events {
				kind, _, _ := strings.Cut(e, "@")
				switch kind {
				case "overload":
					steps += "O"
				case "success":
					steps += "s"
				case "fail_not_overload":
					steps += "n"
				case "consume":
					retries++
				case "consume_denied":
				default:
					t.Fatalf("%s: %s", c.Name, e)
				}
			}
			r.script.set("find", steps)
			_, err := r.coll.Find(t.Context(), bson.D{})
			if (err == nil) != strings.HasSuffix(steps, "s") {
				t.Errorf("%s: %v", c.Name, err)
			}
			if n := len(r.events.take(t, "find")); n != 1+retries {
				t.Errorf("%s: %d attempts, want %d", c.Name, n, 1+retries)
			}
			if got := b.Stats(time.Now()).Tokens; math.Abs(got-c.End) > 1e-9 {
				t.Errorf("%s: %v tokens, want %v", c.Name, got, c.End)
			}
		}
	})
}

// operations are one retryable read, one retryable write, and one command that is
// neither.
var operations = map[string]func(context.Context, *rig) error{
	"find": func(ctx context.Context, r *rig) error {
		_, err := r.coll.Find(ctx, bson.D{})
		return err
	},
	"insert": func(ctx context.Context, r *rig) error {
		_, err := r.coll.InsertOne(ctx, bson.D{})
		return err
	},
	"update": func(ctx context.Context, r *rig) error {
		_, err := r.coll.UpdateMany(ctx, bson.D{}, bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}})
		return err
	},
}

// TestMixtures: attempts are counted across all policies; the cap comes with the
// first overload, and stays.
func TestMixtures(t *testing.T) {
	const forever = "xxxxxxxxxxxxxxxxxxxx"
	for _, row := range []struct {
		command, steps string
		attempts       int // without a timeout
		timed          int // with one, of zero too, which means none but asks for retries without end
	}{
		{"find", "s", 1, 1},
		{"find", "n", 1, 1},
		{"find", "L" + forever, 1, 1},
		{"find", "xs", 2, 2},
		{"find", "cs", 2, 2},
		{"find", "xxxxs", 2, 5},
		{"find", "OOOOOOOOOO", 6, 6},
		{"find", "O" + forever, 6, 6},
		{"find", "xO" + forever, 6, 6},
		{"find", "xOOOOOOOO", 6, 6},
		{"find", "Oxc" + forever, 6, 6},
		{"find", "OcOcOcOcOcOcOcO", 6, 6},
		{"find", "On", 2, 2},
		{"find", "xxxxxxxO" + forever, 2, 8},
		{"insert", "xs", 2, 2},
		{"insert", "cs", 2, 2},
		{"insert", "xxxxs", 2, 5},
		{"insert", "ccccs", 2, 5},
		{"insert", "WWWWWWWWWWW", 6, 6},
		{"insert", "O" + forever, 6, 6},
		{"insert", "W" + forever, 6, 6},
		{"insert", "xO" + forever, 6, 6},
		{"insert", "Occcccccccccc", 6, 6},
		{"insert", "OcOcOcOcOcOcOcO", 6, 6},
		{"insert", "xWWWWWWWWWWWW", 6, 6},
		{"insert", "ws", 2, 2},
		{"insert", "OwOwOwOwOwOwOw", 6, 6},
		{"update", "OOs", 3, 3},
		{"update", "xs", 1, 1},
		{"update", "Oxs", 2, 2},
		{"update", "OOOOOOOOO", 6, 6},
	} {
		for _, timeout := range []time.Duration{-1, 0, time.Minute} {
			t.Run(fmt.Sprintf("%s %s, timeout %v", row.command, row.steps, timeout), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					want := row.attempts
					r := setUp(t, pipes, spillmongo.Config{}, func(o *options.ClientOptions) {
						if timeout >= 0 {
							o.SetTimeout(timeout)
							want = row.timed
						}
					})
					r.script.set(row.command, row.steps)
					err := operations[row.command](t.Context(), r)
					if n := len(r.events.take(t, row.command)); n != want || n != len(r.script.nodes()) {
						t.Errorf("%d attempts, %d at the server, want %d: %v", n, len(r.script.nodes()), want, err)
					}
					good := want <= len(row.steps) && row.steps[want-1] == 's'
					if good != (err == nil) {
						t.Errorf("success %v wanted: %v", good, err)
					}
				})
			})
		}
	}
}

// TestDeadline: there is no wait for a retry that would come too late, and nothing is charged
// for it.
func TestDeadline(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := bucket(1000)
		r := setUp(t, pipes, spillmongo.Config{Budget: b, Rand: fixed(1)})
		if err := r.client.Ping(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		r.fail(0, "alwaysOn", overload("find"))
		r.events.take(t, "")
		ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := r.coll.Find(ctx, bson.D{})
		if labels(err) != bothLabels {
			t.Error(err)
		}
		if n, took := len(r.events.take(t, "find")), time.Since(start); n != 2 || took != 100*time.Millisecond {
			t.Errorf("%d attempts in %v; want 2 in 100 ms, as the third is due in 300 ms", n, took)
		}
		if got := b.Stats(time.Now()).Tokens; got != 999 {
			t.Errorf("%v tokens, want 999", got)
		}
	})
}

// TestLaterRevision runs the prose tests of the revision of July 2026.
func TestLaterRevision(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, row := range []struct {
			name     string
			options  func(*options.ClientOptions)
			base     int
			attempts int
			took     time.Duration
		}{
			{"defaults", func(*options.ClientOptions) {}, 0, 3, 600 * time.Millisecond},
			{"one retry", func(o *options.ClientOptions) { o.SetMaxAdaptiveRetries(1) }, 0, 2, 200 * time.Millisecond},
			{"no retries", func(o *options.ClientOptions) { o.SetMaxAdaptiveRetries(0) }, 0, 1, 0},
			{"a base by the server", func(*options.ClientOptions) {}, 50, 3, 300 * time.Millisecond},
		} {
			mc := pipes
			if row.base > 0 {
				mc.Parameters = bson.D{{Key: "externalClientBaseBackoffMS", Value: row.base}}
			}
			r := setUp(t, mc, spillmongo.Config{Revision: "2026-07", Rand: fixed(1)}, row.options)
			r.fail(0, "alwaysOn", overload("find"))
			if err := r.client.Ping(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			_, err := r.coll.Find(t.Context(), bson.D{})
			if labels(err) != bothLabels {
				t.Error(err)
			}
			if n, took := len(r.events.take(t, "find")), time.Since(start); n != row.attempts || took != row.took {
				t.Errorf("%s: %d attempts in %v, want %d in %v", row.name, n, took, row.attempts, row.took)
			}
		}
	})
}

// TestServerBudgets: one overloaded server uses up its own tokens only.
func TestServerBudgets(t *testing.T) {
	bubble(t, func(t *testing.T) {
		servers := must(budget.NewEndpoints(budget.EndpointsConfig{Bucket: budget.Config{Capacity: 3}}))
		b := bucket(1000)
		r := setUp(t, mongotest.Config{Pipes: true, Topology: mongotest.Sharded, Nodes: 1}, spillmongo.Config{Budget: b, ServerBudgets: servers})
		r.fail(0, "alwaysOn", overload("find"))
		_, err := r.coll.Find(t.Context(), bson.D{})
		if n := len(r.events.take(t, "find")); n != 4 || labels(err) != bothLabels {
			t.Errorf("%d attempts, %v; want 4, as the server has 3 tokens", n, err)
		}
		if got := b.Stats(time.Now()).Tokens; got != 997 {
			t.Errorf("the client has %v tokens, want 997", got)
		}
		server := servers.Bucket(r.Node(0).Addr())
		if got := server.Stats(time.Now()).Tokens; got != 0 {
			t.Errorf("the server has %v tokens, want 0", got)
		}
		r.fail(0, "off", nil)
		if err := r.client.Ping(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if c, s := b.Stats(time.Now()).Tokens, server.Stats(time.Now()).Tokens; math.Abs(c-997.1) > 1e-9 || math.Abs(s-.1) > 1e-9 {
			t.Errorf("after a success the client has %v tokens and the server %v, want 997.1 and 0.1", c, s)
		}
	})
}
