package spillredis

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
)

// A command that waits for other clients has no place in flight, and a caller that stops
// waiting for it says nothing about the server.
func TestBlocking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := make(chan struct{})
		_, client, pool := start(t, egress.Config{MaxInFlight: 1}, func(args []string) string {
			if args[0] == "blpop" {
				<-held
			}
			return "$1\r\nv\r\n"
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		done := make(chan error)
		go func() { done <- client.BLPop(ctx, 0, "list").Err() }()
		synctest.Wait()
		if s := pool.Stats(time.Now())["127.0.0.1:6379"]; s.InFlight.InFlight != 0 {
			t.Errorf("%d in flight", s.InFlight.InFlight)
		}
		if err := client.Get(t.Context(), "k").Err(); err != nil {
			t.Error(err)
		}
		close(held)
		<-done
		_ = client.Close()
	})
}

// Neither has a pipeline with a command that waits: WAIT is for the writes before it on the same
// connection. Inside a transaction nothing waits.
func TestBlockingPipeline(t *testing.T) {
	for _, transaction := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			held := make(chan struct{})
			_, client, pool := start(t, egress.Config{}, func(args []string) string {
				if args[0] == "wait" || args[0] == "exec" {
					<-held
				}
				return ":1\r\n"
			})
			pipe := client.Pipeline()
			if transaction {
				pipe = client.TxPipeline()
			}
			pipe.Incr(t.Context(), "k")
			pipe.Do(t.Context(), "wait", 1, 60_000)
			done := make(chan error)
			go func() { _, err := pipe.Exec(t.Context()); done <- err }()
			synctest.Wait()
			if s := pool.Stats(time.Now())["127.0.0.1:6379"]; (s.InFlight.InFlight != 0) != transaction {
				t.Errorf("transaction %v: %d in flight", transaction, s.InFlight.InFlight)
			}
			close(held)
			if err := <-done; err != nil && !transaction {
				t.Error(err)
			}
			_ = client.Close()
		})
	}
}

// The handshake of a connection takes no second place in flight.
func TestHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen events
		_, client, pool := start(t, egress.Config{MaxInFlight: 1, Observer: &seen}, always("$1\r\nv\r\n"))
		if err := client.Get(t.Context(), "k").Err(); err != nil {
			t.Error(err)
		}
		n := 0
		for _, e := range seen.all {
			if e.Policy == "inflight" {
				n++
			}
		}
		if s := pool.Stats(time.Now())["127.0.0.1:6379"].InFlight; n != 1 || s.InFlight != 0 || s.RejectedTotal != 0 {
			t.Errorf("%d admissions: %+v", n, s)
		}
		_ = client.Close()
	})
}

func TestPipeline(t *testing.T) {
	const busy = "-BUSY a script\r\n"
	for _, c := range []struct {
		name     string
		answers  []string // of three commands
		write    bool
		sent     int // of the last command
		overload bool
	}{
		{"served", []string{"$1\r\nv\r\n", "$-1\r\n", "$1\r\nv\r\n"}, true, 1, false},
		{"one wrong", []string{"$1\r\nv\r\n", "-WRONGTYPE x\r\n", "$1\r\nv\r\n"}, true, 1, false},
		{"all rejected", []string{busy, busy, busy}, true, 3, true},
		{"some rejected", []string{"$1\r\nv\r\n", busy, busy}, true, 1, true},
		{"the master changes", []string{"$1\r\nv\r\n", "-READONLY x\r\n", "-READONLY x\r\n"}, true, 1, false},
		{"loading", []string{"-LOADING x\r\n", "-LOADING x\r\n", "-LOADING x\r\n"}, true, 3, false},
		{"closed, writes", []string{"", "", ""}, true, 1, false},
		{"closed, reads", []string{"", "", ""}, false, 3, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen events
				last := 0
				_, client, _ := start(t, egress.Config{Observer: &seen}, func(args []string) string {
					i := slices.Index([]string{"a", "b", "c"}, args[1])
					if i == 2 || c.answers[i] == "" {
						last++
					}
					return c.answers[i]
				})
				_, err := client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
					for _, key := range []string{"a", "b", "c"} {
						if c.write {
							p.GetSet(t.Context(), key, "v")
						} else {
							p.Get(t.Context(), key)
						}
					}
					return nil
				})
				if c.overload && !strings.Contains(err.Error(), "BUSY") {
					t.Error(err)
				}
				if last != c.sent {
					t.Errorf("sent %d times, want %d: %v", last, c.sent, err)
				}
				if got := seen.first("throttle") == spillway.OutcomeOverloaded; got != c.overload {
					t.Errorf("overloaded is %v", got)
				}
				_ = client.Close()
			})
		})
	}
}

// A server that rejects is throttled: commands fail at once, as such, and are not sent.
func TestThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client, _ := start(t, egress.Config{}, always("-OOM command not allowed\r\n"))
		rejected := 0
		for range 500 {
			cmd := client.Set(t.Context(), "k", "v", 0)
			if errors.Is(cmd.Err(), spillway.ErrRejected) {
				rejected++
			}
		}
		if rejected < 300 || s.sets() != 500-rejected {
			t.Errorf("%d of 500 rejected, %d sent", rejected, s.sets())
		}
		_ = client.Close()
	})
}

// In a cluster, go-redis follows redirections and repeats nothing else.
func TestCluster(t *testing.T) {
	moved := &final{err: errors.New("x")}
	if got := reveal(moved); got != moved.err {
		t.Error(got)
	}
	for answer, sent := range map[string]int{
		"-LOADING loading\r\n":         3, // by the hook of the node
		"-CLUSTERDOWN down\r\n":        3,
		"-WRONGTYPE x\r\n":             1,
		"-MOVED 1 127.0.0.1:6379\r\n":  4, // one and three redirections
		"-TRYAGAIN slot is moving\r\n": 3,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &server{seen: make(map[string]int)}
			s.answer = func(args []string) string {
				if args[0] == "cluster" {
					return "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:6379\r\n"
				}
				return map[bool]string{true: answer, false: "+OK\r\n"}[args[0] == "set"]
			}
			client, err := NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:6379"}, Dialer: s.dial}, egress.Config{})
			if err != nil {
				t.Fatal(err)
			}
			err = client.Set(t.Context(), "k", "v", 0).Err()
			if _, ok := errors.AsType[redis.Error](err); !ok {
				t.Errorf("%q: %v", answer, err)
			}
			if n := s.sets(); n != sent {
				t.Errorf("%q: sent %d times, want %d: %v", answer, n, sent, err)
			}
			_ = client.Close()
			time.Sleep(time.Minute) // goroutines of go-redis end
		})
	}
}

func TestInstall(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	if _, err := Install(client, egress.Config{}); err == nil || !strings.Contains(err.Error(), "MaxRetries") {
		t.Error("a client that retries:", err)
	}
	if _, err := Install(nil, egress.Config{}); err == nil {
		t.Error("no client is accepted")
	}
	if _, err := NewClient(&redis.Options{Addr: "127.0.0.1:1"}, egress.Config{MaxInFlight: 1, ThrottleMode: 9}); err == nil {
		t.Error("a wrong mode is accepted")
	}
}
