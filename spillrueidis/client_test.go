package spillrueidis

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
)

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name, answer string
		sent         int // of a write; three attempts are allowed
		overload     bool
	}{
		{"nil", "_\r\n", 1, false},
		{"loading", "-LOADING Redis is loading the dataset in memory\r\n", 3, false},
		{"busy", "-BUSY Redis is busy running a script.\r\n", 3, true},
		{"busy group", "-BUSYGROUP Consumer Group name already exists\r\n", 1, false},
		{"oom", "-OOM command not allowed when used memory > 'maxmemory'.\r\n", 1, true},
		{"master down", "-MASTERDOWN Link with MASTER is down\r\n", 3, false},
		{"cluster down", "-CLUSTERDOWN Hash slot not served\r\n", 3, false},
		{"clients", "-ERR max number of clients reached\r\n", 3, true},
		{"try again", "-TRYAGAIN Multiple keys request during rehashing of slot\r\n", 3, false},
		{"read only", "-READONLY You can't write against a read only replica.\r\n", 3, false},
		{"moved", "-MOVED 3999 127.0.0.1:6381\r\n", 1, false},
		{"wrong type", "-WRONGTYPE Operation against a key\r\n", 1, false},
		{"closed", "", 1, false}, // the server may have executed it
		{"garbage", "what\r\n", 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen events
				s, client := start(t, egress.Config{Observer: &seen}, always(c.answer))
				err := client.set(t.Context(), "k")
				if err == nil {
					t.Fatal("no error")
				}
				if _, ok := rueidis.IsRedisErr(err); c.sent == 3 && !ok {
					t.Errorf("%T, want the answer of the server", err)
				}
				if n := s.count("SET"); n != c.sent {
					t.Errorf("sent %d times, want %d (%v)", n, c.sent, err)
				}
				if o, _ := seen.first("throttle"); (o == spillway.OutcomeOverloaded) != c.overload {
					t.Errorf("outcome %v", o)
				}
				client.idle(t)
				end(client)
			})
		})
	}
}

// idle checks that no place in flight is taken.
func (c *Client) idle(t *testing.T) {
	t.Helper()
	for backend, s := range c.Stats(time.Now()) {
		if s.InFlight.InFlight != 0 || s.InFlight.SurplusTotal != 0 {
			t.Errorf("%s: in flight after the call: %+v", backend, s.InFlight)
		}
	}
}

// A read whose connection breaks is repeated, a write only if it is marked.
func TestBroken(t *testing.T) {
	for name, row := range map[string]struct {
		command string
		make    func(rueidis.Builder) rueidis.Completed
	}{
		"read":   {"GET", func(b rueidis.Builder) rueidis.Completed { return b.Get().Key("k").Build() }},
		"marked": {"SET", func(b rueidis.Builder) rueidis.Completed { return b.Set().Key("k").Value("v").Build().ToRetryable() }},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, client := start(t, egress.Config{}, always(""))
			err := client.Do(t.Context(), row.make(client.B())).Error()
			if n := s.count(row.command); n != 3 || err == nil || !strings.Contains(err.Error(), "gave up after 3 attempts") {
				t.Errorf("%s: sent %d times: %v", name, n, err)
			}
			end(client)
		})
	}
}

// A server that rejects is throttled: commands fail at once, as such, and are not sent.
func TestThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := start(t, egress.Config{}, always("-OOM command not allowed\r\n"))
		rejected := 0
		for range 500 {
			if errors.Is(client.set(t.Context(), "k"), spillway.ErrRejected) {
				rejected++
			}
		}
		if rejected < 300 || s.count("SET") != 500-rejected {
			t.Errorf("%d of 500 rejected, %d sent", rejected, s.count("SET"))
		}
		end(client)
	})
}

// Commands that wait for other clients and subscriptions have no place in flight, and a caller
// that stops waiting for them says nothing about the server.
func TestBlocking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := make(chan struct{})
		var seen events
		_, client := start(t, egress.Config{MaxInFlight: 1, Observer: &seen}, func(args []string) string {
			switch args[0] {
			case "BLPOP":
				<-held
			case "SUBSCRIBE":
				return ">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n>3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nhi\r\n"
			}
			return "$1\r\nv\r\n"
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		done, messages := make(chan error, 2), make(chan string, 1)
		go func() { done <- client.Do(ctx, client.B().Blpop().Key("list").Timeout(0).Build()).Error() }()
		go func() {
			done <- client.Receive(ctx, client.B().Subscribe().Channel("c").Build(), func(m rueidis.PubSubMessage) { messages <- m.Message })
		}()
		if m := <-messages; m != "hi" {
			t.Errorf("received %q", m)
		}
		synctest.Wait()
		client.idle(t)
		if _, err := client.get(t.Context(), "k"); err != nil {
			t.Error(err)
		}
		for range 2 {
			if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}
		if s := client.Stats(time.Now())[address].Throttle[spillway.Critical.Index()]; s.Requests != s.Accepts {
			t.Errorf("the throttle counts callers that stop waiting: %+v", s)
		}
		close(held)
		end(client)
	})
}

func TestMulti(t *testing.T) {
	const busy, ok = "-BUSY a script\r\n", "$1\r\nv\r\n"
	for _, c := range []struct {
		name     string
		answers  []string // of three commands
		write    bool
		sent     int // of the last command
		overload bool
	}{
		{"served", []string{ok, "_\r\n", ok}, true, 1, false},
		{"one wrong", []string{ok, "-WRONGTYPE x\r\n", ok}, true, 1, false},
		{"all rejected", []string{busy, busy, busy}, true, 3, true},
		{"some rejected", []string{ok, busy, busy}, true, 1, true},
		{"the master changes", []string{ok, "-READONLY x\r\n", "-READONLY x\r\n"}, true, 1, false},
		{"loading", []string{"-LOADING x\r\n", "-LOADING x\r\n", "-LOADING x\r\n"}, true, 3, false},
		{"closed, writes", []string{"", "", ""}, true, 1, false},
		{"closed, reads", []string{"", "", ""}, false, 3, false},
		{"closed after one", []string{ok, "", ""}, true, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen events
				last := 0
				_, client := start(t, egress.Config{Observer: &seen, MaxInFlight: 1}, func(args []string) string {
					i := slices.Index([]string{"a", "b", "c"}, args[1])
					if i == 2 || c.answers[i] == "" {
						last++
					}
					return c.answers[i]
				})
				cmds := make(rueidis.Commands, 0, 3)
				for _, key := range []string{"a", "b", "c"} {
					if c.write {
						cmds = append(cmds, client.B().Getset().Key(key).Value("v").Build())
					} else {
						cmds = append(cmds, client.B().Get().Key(key).Build())
					}
				}
				all := client.DoMulti(t.Context(), cmds...)
				if len(all) != 3 || last != c.sent {
					t.Errorf("sent %d times, want %d: %v", last, c.sent, all)
				}
				if o, _ := seen.first("throttle"); (o == spillway.OutcomeOverloaded) != c.overload {
					t.Errorf("outcome %v", o)
				}
				client.idle(t)
				end(client)
			})
		})
	}
}

// A dedicated client passes the policies, and repeats nothing.
func TestDedicated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen events
		s, client := start(t, egress.Config{Observer: &seen}, always("-LOADING x\r\n"))
		err := client.Dedicated(func(d rueidis.DedicatedClient) error {
			for _, r := range d.DoMulti(t.Context(), d.B().Multi().Build(), d.B().Set().Key("k").Value("v").Build(), d.B().Exec().Build()) {
				if _, ok := rueidis.IsRedisErr(r.Error()); !ok {
					t.Error(r.Error())
				}
			}
			return d.Do(t.Context(), d.B().Get().Key("k").Build()).Error()
		})
		if _, ok := rueidis.IsRedisErr(err); !ok || s.count("SET") != 1 || s.count("GET") != 1 {
			t.Errorf("%v, %d and %d times", err, s.count("SET"), s.count("GET"))
		}
		if _, n := seen.first("inflight"); n != 2 {
			t.Errorf("%d calls", n)
		}
		d, cancel := client.Dedicate()
		if err := d.Do(t.Context(), d.B().Get().Key("k").Build()).Error(); err == nil {
			t.Error("no error")
		}
		cancel()
		client.idle(t)
		end(client)
	})
}

// The place of a stream is given back when it is sent.
func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := start(t, egress.Config{MaxInFlight: 1}, always("$1\r\nv\r\n"))
		s := client.DoStream(t.Context(), client.B().Get().Key("k").Build())
		client.idle(t)
		var text strings.Builder
		if _, err := s.WriteTo(&text); err != nil || text.String() != "v" {
			t.Errorf("%q, %v", text.String(), err)
		}
		empty := client.DoMultiStream(t.Context())
		if empty.HasNext() {
			t.Error("a stream of nothing")
		}
		end(client)
	})
}

func TestNewClient(t *testing.T) {
	if _, err := NewClient(rueidis.ClientOption{InitAddress: []string{"127.0.0.1:1"}}, egress.Config{MaxInFlight: 1, ThrottleMode: 9}); err == nil {
		t.Error("a wrong mode is accepted")
	}
	if _, err := NewClient(rueidis.ClientOption{}, egress.Config{}); err == nil {
		t.Error("no address is accepted")
	}
	// As with rueidis, a single client may be made before its server is there.
	c, err := NewClient(rueidis.ClientOption{InitAddress: []string{"127.0.0.1:1"}, ForceSingleClient: true}, egress.Config{})
	if c == nil || err == nil {
		t.Fatal(c, err)
	}
	if err := c.set(t.Context(), "k"); err == nil {
		t.Error("no error")
	}
	if s := c.Stats(time.Now())["127.0.0.1:1"].Throttle[spillway.Critical.Index()]; s.Requests != s.Accepts {
		t.Errorf("the throttle counts a server that is not there: %+v", s)
	}
	if err := c.Update(egress.Config{MaxInFlight: 7}); err != nil || c.Stats(time.Now())["127.0.0.1:1"].InFlight.MaxInFlight != 7 {
		t.Error(err)
	}
	c.Close()
}
