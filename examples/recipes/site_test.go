package recipes_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/seed90641741/spillway"
)

// A site is what all recipes serve, for frameworks that serve handlers of net/http. The others have the same in their own words.
type site struct {
	entered, release chan struct{} // of the slow user
	feed             chan string   // what streams send
	ended            chan struct{} // a stream, or a connection that was taken over
}

func newSite() *site {
	return &site{make(chan struct{}), make(chan struct{}), make(chan string), make(chan struct{}, 1)}
}

func (s *site) users(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/users/broken":
		w.WriteHeader(http.StatusInternalServerError)
	case "/users/panics":
		panic(http.ErrAbortHandler)
	case "/users/slow":
		close(s.entered)
		<-s.release
	}
	_, _ = io.WriteString(w, "user")
}

// next returns what to send next, or false when the client has left.
func (s *site) next(ctx context.Context) (text string, ok bool) {
	select {
	case text = <-s.feed:
		return text, true
	case <-ctx.Done():
		return "", false
	}
}

func (s *site) end() { s.ended <- struct{}{} }

func (s *site) stream(w http.ResponseWriter, r *http.Request) { s.send(w, r, "", "") }

func (s *site) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	s.send(w, r, "data:", "\n\n")
}

func (s *site) send(w http.ResponseWriter, r *http.Request, before, after string) {
	defer s.end()
	w.(http.Flusher).Flush()
	for {
		text, ok := s.next(r.Context())
		if !ok {
			return
		}
		_, _ = io.WriteString(w, before+text+after)
		w.(http.Flusher).Flush()
	}
}

func (s *site) socket(w http.ResponseWriter, r *http.Request) {
	var upgrader websocket.Upgrader
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer s.end()
	defer conn.Close()
	for {
		kind, message, err := conn.ReadMessage()
		if err != nil || conn.WriteMessage(kind, message) != nil {
			return
		}
	}
}

// checkStream finds that a client has each part of a stream before the next one is made, and that the handler ends with its client.
func (recipe recipe) checkStream(t *testing.T, path, contentType string, parts ...string) {
	v := recipe.open(t)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+v.address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() { v.feed <- "one" }() // some frameworks send no head before
	resp, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); !strings.HasPrefix(got, contentType) {
		t.Errorf("Content-Type %q, want %q", got, contentType)
	}
	r := bufio.NewReader(resp.Body)
	for i, part := range parts {
		if i > 0 {
			v.feed <- "two"
		}
		got := make([]byte, len(part))
		if _, err := io.ReadFull(r, got); err != nil || string(got) != part {
			t.Fatalf("part %d: %q, %v, want %q", i, got, err, part)
		}
	}
	leave()
	for ended := false; !ended; {
		select {
		case v.feed <- "late": // for frameworks that notice when they write
		case <-v.ended:
			ended = true
		}
	}
	v.idle(t)
}

// checkSocket finds that a connection can be taken over, as by WebSockets, and is no load from then on.
func (recipe recipe) checkSocket(t *testing.T) {
	v := recipe.open(t)
	conn, resp, err := websocket.DefaultDialer.Dial("ws://"+v.address+"/socket", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	for _, message := range []string{"one", "two"} {
		if err := conn.WriteMessage(websocket.TextMessage, []byte(message)); err != nil {
			t.Fatal(err)
		}
		if _, got, err := conn.ReadMessage(); err != nil || string(got) != message {
			t.Errorf("%q, %v, want %q", got, err, message)
		}
		if status, _ := v.get(t, "/users/7"); status != http.StatusOK {
			t.Errorf("beside a connection that was taken over: %d, want 200", status)
		}
	}
	conn.Close()
	<-v.ended
	v.idle(t)
}

// checkRecovery finds that the framework answers a request whose handler panics, which is a failure of the server's.
func (recipe recipe) checkRecovery(t *testing.T) {
	v := recipe.open(t)
	if status, _ := v.get(t, "/panics"); status != http.StatusInternalServerError {
		t.Errorf("%d, want 500", status)
	}
	if got := v.seen.outcomes(); len(got) != 1 || got[0] != spillway.OutcomeFailed {
		t.Errorf("outcomes %v, want one that has failed", got)
	}
	v.idle(t)
	if status, _ := v.get(t, "/users/7"); status != http.StatusOK {
		t.Errorf("after a panic: %d, want 200", status)
	}
}
