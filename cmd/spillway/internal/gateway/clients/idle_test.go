package clients

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// served begins a Set around one connection, whose other end is returned.
func served(t *testing.T, s *Set) (*clientConn, net.Conn) {
	here, there := net.Pipe()
	t.Cleanup(func() { _, _ = here.Close(), there.Close() })
	ctx := s.Open(t.Context(), there)
	return ctx.Value(clientKey{}).(*clientConn), here
}

// asks has a connection begin an exchange, and returns what ends it.
func asks(t *testing.T, s *Set, c *clientConn, major int) (end func()) {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.ProtoMajor = major
	x := &Exchange{client: c, first: major == 1}
	if !s.Begin(x) {
		t.Fatal("the exchange is rejected")
	}
	return func() { s.End(x) }
}

// TestIdle: an idle HTTP/1.1 connection is closed after the idle timeout, an HTTP/2 connection
// gets a GOAWAY first.
func TestIdle(t *testing.T) {
	for _, row := range []struct {
		name  string
		major int
		first string // what the client gets
		after time.Duration
	}{
		{"no request", 0, "", 10 * time.Second},
		{"HTTP/1.1", 1, "", 15 * time.Second},
		{"HTTP/2", 2, string(goAway), 16 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := New(0, 10*time.Second)
			c, client := served(t, s)
			begun := time.Now()
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			all.Go(func() { s.Watch(ctx, func() time.Duration { return 100 * time.Millisecond }) })
			if row.major > 0 {
				end := asks(t, s, c, row.major)
				time.AfterFunc(5*time.Second, end)
			}
			all.Go(func() { // net/http
				_, err := c.conn.Read(make([]byte, 1))
				if e, ok := err.(net.Error); ok && e.Timeout() {
					_ = c.conn.Close()
				}
			})
			got, err := io.ReadAll(client)
			if err != nil || string(got) != row.first {
				t.Errorf("%s: the client got %q, %v, want %q", row.name, got, err, row.first)
			}
			if d := time.Since(begun); d < row.after || d > row.after+500*time.Millisecond {
				t.Errorf("%s: it ended after %v, want %v", row.name, d, row.after)
			}
			cancel()
			all.Wait()
		})
	}
}

// TestLateRequest: after GOAWAY there is a second from the last byte of the client until its connection is closed, at most ten: what came
// may be a request whose handler has no processor yet.
func TestLateRequest(t *testing.T) {
	for _, row := range []struct {
		often time.Duration // between two bytes of the client; 0: it sends none
		times int
		after time.Duration
	}{{0, 0, 11 * time.Second}, {900 * time.Millisecond, 1, 11900 * time.Millisecond}, {900 * time.Millisecond, 100, 20 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			s := New(0, 10*time.Second)
			c, _ := served(t, s)
			c.second = true
			begun, times := time.Now(), 0
			for at := begun; time.Since(begun) < time.Minute; time.Sleep(100 * time.Millisecond) { // in the bubble: the looks of Watch
				if c.announced > 0 && times < row.times && time.Since(at) >= row.often {
					at = time.Now()
					times++
					c.wire.heard.Store(monotonic())
				}
				all := s.idle()
				if len(all) > 0 && all[0].close {
					break
				}
				if len(all) > 0 {
					at = time.Now()
				}
			}
			if d := time.Since(begun); d < row.after || d > row.after+500*time.Millisecond {
				t.Errorf("%d bytes, one each %v: it ended after %v, want %v", row.times, row.often, d, row.after)
			}
		})
	}
}

// TestIdleIsNotInAHead: a client that has sent a part of a head is not idle, although it was so long until then.
func TestIdleIsNotInAHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(0, 10*time.Second)
		server := &http.Server{ConnContext: s.Open, ConnState: s.State, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			x, _ := NewExchange(w, r, &Bounds{})
			defer x.End()
			if s.Begin(x) {
				defer s.End(x)
			}
		})}
		listener := make(pipes, 1)
		here, there := net.Pipe()
		listener <- &conn{Conn: there, timeout: -1}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { _ = server.Serve(listener) })
		all.Go(func() { s.Watch(ctx, func() time.Duration { return 100 * time.Millisecond }) })
		defer all.Wait()
		defer func() { cancel(); close(listener); _ = here.Close() }()
		in := bufio.NewReader(here)
		for i := range 3 {
			for _, text := range []string{"GET / HTTP/1.1\r\n", "Host: a\r\n\r\n"} {
				if _, err := io.WriteString(here, text); err != nil {
					t.Fatalf("request %d ends before %q: %v", i, text, err)
				}
				time.Sleep(time.Second / 2)
			}
			if _, err := http.ReadResponse(in, nil); err != nil {
				t.Fatalf("request %d is answered with %v", i, err)
			}
			time.Sleep(9800 * time.Millisecond)
		}
		begun := time.Now()
		if _, err := in.ReadByte(); err == nil || time.Since(begun) > time.Second {
			t.Errorf("an idle connection ends after %v with %v", time.Since(begun), err)
		}
	})
}

// TestIdleIsNotBusy: a connection with a request is not idle, and after a GOAWAY it ends with
// its last request.
func TestIdleIsNotBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(0, 10*time.Second)
		c, _ := served(t, s)
		end := asks(t, s, c, 2)
		time.Sleep(time.Hour)
		if all := s.idle(); len(all) != 0 {
			t.Fatal("a connection at work is idle")
		}
		end()
		time.Sleep(10*time.Second + 1)
		if all := s.idle(); len(all) != 1 || all[0].close {
			t.Fatalf("%+v, want that the end is announced", all)
		}
		end = asks(t, s, c, 2) // it was on its way
		time.Sleep(time.Minute)
		if all := s.idle(); len(all) != 0 {
			t.Fatal("a connection at work is idle after its end was announced")
		}
		end()
		if all := s.idle(); len(all) != 0 {
			t.Fatalf("%+v, but the client may have sent another request", all)
		}
		if all := s.idle(); len(all) != 1 || !all[0].close {
			t.Fatalf("%+v, want the end", all)
		}
	})
}

// TestIdleAfterAPause: a request that came while this process stood still is served, although
// the first look at its connection finds it idle for too long.
func TestIdleAfterAPause(t *testing.T) {
	for _, major := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			s := New(0, 10*time.Second)
			c, _ := served(t, s)
			asks(t, s, c, major)()
			time.Sleep(10*time.Second + 1)
			if major == 2 {
				s.idle() // it is announced
			}
			for range 3 {
				time.Sleep(time.Minute)
				if all := s.idle(); len(all) != 0 {
					t.Fatalf("HTTP/%d: %+v, before anybody can have read a request", major, all)
				}
				end := asks(t, s, c, major)
				if all := s.idle(); len(all) != 0 {
					t.Fatalf("HTTP/%d: %+v at work", major, all)
				}
				end()
			}
		})
	}
}

// TestIdleDoesNotWait: a client that reads nothing does not keep others from being watched.
func TestIdleDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(0, 10*time.Second)
		deaf, _ := served(t, s)
		asks(t, s, deaf, 2)()
		looks := 0
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		s.Watch(ctx, func() time.Duration { looks++; return 100 * time.Millisecond })
		if looks < 199 {
			t.Errorf("it looked %d times in 20 s, want 200", looks)
		}
	})
}

// TestIdleTearsNoFrame: a connection whose client does not read what is written is closed without GOAWAY, which could
// land within a frame.
func TestIdleTearsNoFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(0, 10*time.Second)
		here, there := net.Pipe()
		wire := &conn{Conn: there, timeout: -1}
		c := s.Open(t.Context(), wire).Value(clientKey{}).(*clientConn)
		asks(t, s, c, 2)()
		go func() { _, _ = wire.Write(make([]byte, 100)) }()
		_, _ = io.ReadFull(here, make([]byte, 20))
		time.Sleep(10*time.Second + 1)
		if all := s.idle(); len(all) != 0 {
			t.Fatalf("%+v within a frame", all)
		}
		if all := s.idle(); len(all) != 1 || !all[0].close {
			t.Fatalf("%+v, want that it is closed", all)
		}
		_, _ = io.ReadFull(here, make([]byte, 80))
		synctest.Wait()
		if all := s.idle(); len(all) != 1 || all[0].close {
			t.Fatalf("%+v after the frame, want that the end is announced", all)
		}
		_, _ = here.Close(), there.Close()
	})
}

// TestIdleUntilARequestComes: a request may come between the moment that a connection is found idle and its GOAWAY, which is then not
// sent, and one that comes while GOAWAY is sent is answered after it.
func TestIdleUntilARequestComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(0, 10*time.Second)
		c, client := served(t, s)
		asks(t, s, c, 2)()
		time.Sleep(10*time.Second + 1)
		all := s.idle()
		if len(all) != 1 || all[0].close {
			t.Fatalf("%+v, want that the end is announced", all)
		}
		last := asks(t, s, c, 2)
		var announcing sync.WaitGroup
		end(all, &announcing)
		announcing.Wait() // nobody reads, so that nothing can have been sent
		last()
		time.Sleep(10*time.Second + 1)
		if all = s.idle(); len(all) != 1 || all[0].close {
			t.Fatalf("%+v, want that the end is announced after all", all)
		}
		end(all, &announcing)
		synctest.Wait() // it is being sent
		begun := make(chan time.Time)
		go func() {
			asks(t, s, c, 2)
			begun <- time.Now()
		}()
		time.Sleep(500 * time.Millisecond)
		read := time.Now()
		got := make([]byte, len(goAway))
		if _, err := io.ReadFull(client, got); err != nil || string(got) != string(goAway) {
			t.Errorf("the client got %q, %v", got, err)
		}
		if at := <-begun; at.Before(read) {
			t.Errorf("the request begins %v before GOAWAY is sent", read.Sub(at))
		}
		announcing.Wait()
	})
}

// TestNoIdleTimeout: not above zero is no limit.
func TestNoIdleTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, timeout := range []time.Duration{0, -1} {
			s := New(0, timeout)
			c, _ := served(t, s)
			asks(t, s, c, 2)()
			time.Sleep(1000 * time.Hour)
			if all := s.idle(); len(all) != 0 {
				t.Errorf("%v: %+v", timeout, all)
			}
		}
	})
}

// TestDrainAnnouncesIdleConnections: while a connection of HTTP/1.1 holds a drain up, those of HTTP/2 that are idle get
// their GOAWAY, and end.
func TestDrainAnnouncesIdleConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, timeout := range []time.Duration{time.Hour, -1} {
			s := New(0, timeout)
			busy, _ := served(t, s)
			asks(t, s, busy, 1)
			c, client := served(t, s)
			asks(t, s, c, 2)()
			time.Sleep(time.Minute)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			var all sync.WaitGroup
			all.Go(func() { s.Watch(ctx, func() time.Duration { return 100 * time.Millisecond }) })
			all.Go(func() { s.Drain(ctx, time.Minute) })
			all.Go(func() { // net/http
				_, _ = c.conn.Read(make([]byte, 1))
				_ = c.conn.Close()
			})
			time.AfterFunc(20*time.Second, func() { _ = c.conn.Close() })
			begun := time.Now()
			got, err := io.ReadAll(client)
			if took := time.Since(begun); err != nil || string(got) != string(goAway) || took > Grace+goAwayTime+500*time.Millisecond {
				t.Errorf("idle timeout %v: the client got %q, %v, until %v after the drain began", timeout, got, err, took)
			}
			cancel()
			all.Wait()
		}
	})
}
