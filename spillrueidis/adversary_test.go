package spillrueidis

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
)

// A server that accepts connections and never answers: each caller returns at its deadline, and
// after some calls most are rejected at once. No place in flight is lost.
func TestHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := make(chan struct{})
		s, client := start(t, egress.Config{}, func([]string) string { <-held; return "" })
		rejected, late := 0, time.Duration(0)
		for range 500 {
			begun := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			if errors.Is(client.set(ctx, "k"), spillway.ErrRejected) {
				rejected++
			}
			cancel()
			late = max(late, time.Since(begun)-100*time.Millisecond)
			time.Sleep(10 * time.Millisecond)
		}
		if rejected < 250 || late > time.Millisecond {
			t.Errorf("%d of 500 rejected, a caller waited %v longer than its deadline", rejected, late)
		}
		t.Logf("%d of 500 rejected, %d sent", rejected, s.count("SET"))
		client.idle(t)
		close(held)
		end(client)
	})
}

// A thousand callers whose contexts end at any moment, before, while and after their command
// is sent: none of them waits longer, others are served, no place is lost, and the throttle
// counts no caller that left as an overload.
func TestCallersLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := start(t, egress.Config{}, func([]string) string {
			time.Sleep(time.Millisecond)
			return "$1\r\nv\r\n"
		})
		var all sync.WaitGroup
		var failed atomic.Int64
		for i := range 1000 {
			all.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				time.AfterFunc(time.Duration(i%50)*time.Millisecond, cancel)
				if _, err := client.get(ctx, "k"); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, spillway.ErrRejected) {
					t.Error(err)
				}
			})
			if i%100 == 0 {
				all.Go(func() {
					if _, err := client.get(t.Context(), "k"); err != nil {
						failed.Add(1)
					}
				})
			}
		}
		all.Wait()
		if n := failed.Load(); n > 0 {
			t.Errorf("%d of 10 patient callers failed", n)
		}
		if s := client.Stats(time.Now())[address].Throttle[spillway.Critical.Index()]; s.Requests != s.Accepts {
			t.Errorf("the throttle has %v requests and %v accepts", s.Requests, s.Accepts)
		}
		client.idle(t)
		end(client)
	})
}

// A caller opens a connection and leaves meanwhile. Callers that wait for the same connection are
// not affected: their commands are sent.
func TestOpenerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		s, client := start(t, egress.Config{}, func([]string) string {
			if away.Load() {
				return "" // the connection ends
			}
			return "$1\r\nv\r\n"
		})
		away.Store(true)
		_ = client.set(t.Context(), "k")
		away.Store(false)
		s.slow.Store(int64(50 * time.Millisecond))
		var all sync.WaitGroup
		errs := make([]error, 5)
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			_ = client.set(ctx, "k")
		})
		synctest.Wait()
		for i := range errs {
			all.Go(func() { errs[i] = client.set(t.Context(), "k") })
		}
		all.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Error(err)
		}
		client.idle(t)
		end(client)
	})
}

// A server that has no time for new connections: each takes as long to open as it may. That is no other
// caller's leaving: each attempt opens one, and the throttle learns of it.
func TestOpeningTimesOut(t *testing.T) {
	for name, hang := range map[string]func(s *server){
		"dial":      func(s *server) { s.slow.Store(int64(time.Hour)) },
		"handshake": func(s *server) { s.mute.Store(true) },
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &server{seen: make(map[string]int), answer: func(string, []string) string { return "" }} // the connection ends
			client := s.client(t, egress.Config{}, rueidis.ClientOption{
				InitAddress: []string{address}, ForceSingleClient: true, PipelineMultiplex: -1, // one connection
			})
			_ = client.set(t.Context(), "k")
			hang(s)
			dials := func() int {
				s.mu.Lock()
				defer s.mu.Unlock()
				return s.dials
			}
			before, begun := dials(), time.Now()
			if err := client.set(t.Context(), "k"); err == nil {
				t.Errorf("%s: no error", name)
			}
			if n, took := dials()-before, time.Since(begun); n > 3 || took > 20*time.Second {
				t.Errorf("%s: %d connections for one command, which took %v", name, n, took)
			}
			if s := client.Stats(time.Now())[address].Throttle[spillway.Critical.Index()]; s.Requests == s.Accepts {
				t.Errorf("%s: the throttle has %v requests and %v accepts", name, s.Requests, s.Accepts)
			}
			client.idle(t)
			end(client)
		})
	}
}

// One slow command holds up all commands behind it on its connection, so that they miss their
// deadlines. That is not an overload: afterwards commands are served, and few are rejected.
func TestSlowCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := start(t, egress.Config{}, func(args []string) string {
			if args[0] == "KEYS" {
				time.Sleep(500 * time.Millisecond)
			}
			return "$1\r\nv\r\n"
		})
		get := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err := client.get(ctx, "k")
			return err
		}
		load := func(lasts time.Duration) (calls, rejected, served int64) {
			var all sync.WaitGroup
			for begun := time.Now(); time.Since(begun) < lasts; time.Sleep(time.Millisecond) {
				calls++
				all.Go(func() {
					switch err := get(); {
					case err == nil:
						atomic.AddInt64(&served, 1)
					case errors.Is(err, spillway.ErrRejected):
						atomic.AddInt64(&rejected, 1)
					}
				})
			}
			all.Wait()
			return calls, rejected, served
		}
		_, _, _ = load(2 * time.Second)
		var slow sync.WaitGroup
		slow.Go(func() { _ = client.Do(t.Context(), client.B().Keys().Pattern("*").Build()) })
		calls, rejected, served := load(time.Second)
		t.Logf("%d calls, %d served, %d rejected", calls, served, rejected)
		if rejected > calls/20 || served < calls/3 {
			t.Errorf("beside a slow command %d of %d calls are served and %d rejected", served, calls, rejected)
		}
		calls, rejected, served = load(time.Second)
		if rejected > 0 || served != calls {
			t.Errorf("after a slow command %d of %d calls are served and %d rejected", served, calls, rejected)
		}
		slow.Wait()
		end(client)
	})
}

// A server that answers what no server answers ends the connection, and the call with an error.
func TestGarbage(t *testing.T) {
	for _, answer := range []string{"what\r\n", "\x00\x00\x00\r\n", "$x\r\n", ":\r\n", "*2\r\n$1\r\na\r\n?\r\n", "-\r\n", "-MOVED 1 x\r\n", "!5\r\nERR x\r\n", "|1\r\n+a\r\n"} {
		synctest.Test(t, func(t *testing.T) {
			_, client := start(t, egress.Config{}, always(answer))
			for range 50 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				if _, err := client.get(ctx, "k"); err == nil {
					t.Errorf("%q is no error", answer)
				}
				cancel()
			}
			client.idle(t)
			end(client)
		})
	}
}
