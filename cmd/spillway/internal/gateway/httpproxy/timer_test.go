package httpproxy

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// lasting is an upstream whose answers begin at once and end when next is closed: a stream of events, an upgraded connection, or
// a plain answer. It says on left that its client has left it.
func lasting(next <-chan struct{}, left chan<- string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			c, in, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer c.Close()
			fmt.Fprint(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nfirst ")
			select {
			case <-next:
				fmt.Fprint(c, "last")
			case <-waitFor(in):
				left <- r.URL.Path
			}
			return
		}
		w.Header().Set("Content-Type", r.URL.Query().Get("type"))
		fmt.Fprint(w, "first ")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-next:
			fmt.Fprint(w, "last")
		case <-r.Context().Done():
			left <- r.URL.Path
		}
	}
}

// waitFor returns a channel that is closed when nothing more can be read.
func waitFor(in io.Reader) <-chan struct{} {
	over := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, in)
		close(over)
	}()
	return over
}

// TestStreamsOutliveTheTimeout: the timeout of a route bounds how long a stream of events or an upgrade takes to begin. Any other
// answer ends in time. A stream whose client leaves ends at the upstream as well.
func TestStreamsOutliveTheTimeout(t *testing.T) {
	t.Parallel()
	steadily(t, time.Second, func(timeout time.Duration) error { return streamsOutlive(t, timeout) })
}

// An openStream is an answer that has begun.
type openStream struct {
	name string
	in   io.ReadCloser
}

func streamsOutlive(t *testing.T, timeout time.Duration) error {
	t.Helper()
	next, left := make(chan struct{}), make(chan string, 10)
	end := sync.OnceFunc(func() { close(next) })
	defer end()
	url, p := front(t, lasting(next, left), func(c *config.Config) { c.Routes = []config.Route{{Timeout: timeout}} })
	streams, err := openStreams(t, url, p)
	for _, s := range streams {
		defer s.in.Close()
	}
	if err != nil {
		return err
	}
	gone, err := client(t, false).Get(url + "/gone?type=text/event-stream")
	if err != nil {
		return err
	}
	defer gone.Body.Close()
	for range 2 { // plain answers
		if path := <-left; path != "/" {
			return fmt.Errorf("%s ends", path)
		}
	}
	<-time.After(timeout / 5) // so that all are past their deadline
	_ = gone.Body.Close()
	if path := <-left; path != "/gone" {
		return fmt.Errorf("%s ends", path)
	}
	end()
	for _, s := range streams {
		got, err := io.ReadAll(s.in)
		if plain := s.name == "text/plain"; plain != (err != nil) || !plain && string(got) != "first last" {
			return fmt.Errorf("%s: %q, %v", s.name, got, err)
		}
	}
	return nil
}

// openStreams opens streams of events and plain answers, and an upgraded connection.
func openStreams(t *testing.T, url string, p *Proxy) (all []openStream, err error) {
	t.Helper()
	for _, second := range []bool{false, true} {
		for _, kind := range []string{"text/event-stream", "text/event-stream%3Bcharset=utf-8", "text/plain"} {
			resp, err := client(t, second).Get(url + "/?type=" + kind)
			if err != nil {
				return all, err
			}
			all = append(all, openStream{kind, resp.Body})
			if resp.StatusCode != http.StatusOK {
				return all, fmt.Errorf("%s: status %d", kind, resp.StatusCode)
			}
		}
	}
	c := dial(t, p)
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	in := bufio.NewReader(c)
	resp, err := http.ReadResponse(in, nil)
	if err == nil && resp.StatusCode != http.StatusSwitchingProtocols {
		err = fmt.Errorf("upgrade: status %d", resp.StatusCode)
	}
	return append(all, openStream{"upgraded", io.NopCloser(in)}), err
}

// TestUntimedStreamsIdle: a stream of events that has ended the deadline of its request has an idle timeout.
func TestUntimedStreamsIdle(t *testing.T) {
	t.Parallel()
	left := make(chan string, 2)
	url, _ := front(t, lasting(nil, left), func(c *config.Config) {
		c.Listeners[0].StreamIdle = 300 * time.Millisecond
		c.Routes = []config.Route{{Timeout: time.Minute}}
	})
	for _, second := range []bool{false, true} {
		resp, err := client(t, second).Get(url + "/?type=text/event-stream")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(resp.Body); err == nil || string(got) != "first " {
			t.Errorf("HTTP/2: %v: %q, %v", second, got, err)
		}
		_ = resp.Body.Close()
		<-left
	}
}
