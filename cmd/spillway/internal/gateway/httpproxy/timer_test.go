package httpproxy

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
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
	const timeout = time.Second
	next, left := make(chan struct{}), make(chan string, 10)
	url, p := front(t, lasting(next, left), func(c *config.Config) { c.Routes = []config.Route{{Timeout: timeout}} })
	type opened struct {
		name string
		in   io.ReadCloser
	}
	var streams []opened
	for _, second := range []bool{false, true} {
		for _, kind := range []string{"text/event-stream", "text/event-stream%3Bcharset=utf-8", "text/plain"} {
			resp, err := client(t, second).Get(url + "/?type=" + kind)
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Fatal(resp, err)
			}
			defer resp.Body.Close()
			streams = append(streams, opened{kind, resp.Body})
		}
	}
	c := dial(t, p)
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	in := bufio.NewReader(c)
	if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(resp, err)
	}
	streams = append(streams, opened{"upgraded", io.NopCloser(in)})
	gone, err := client(t, false).Get(url + "/gone?type=text/event-stream")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // plain answers
		if path := <-left; path != "/" {
			t.Errorf("%s ends", path)
		}
	}
	<-time.After(timeout / 5) // so that all are past their deadline
	_ = gone.Body.Close()
	if path := <-left; path != "/gone" {
		t.Errorf("%s ends", path)
	}
	close(next)
	for _, s := range streams {
		got, err := io.ReadAll(s.in)
		if plain := s.name == "text/plain"; plain != (err != nil) || !plain && string(got) != "first last" {
			t.Errorf("%s: %q, %v", s.name, got, err)
		}
	}
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
