package httpproxy

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/clients"
)

// kept is a connection that is kept by the proxy after a request.
type kept struct {
	net.Conn

	r *bufio.Reader
}

const post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"

func keep(t *testing.T, url string) *kept {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	k := &kept{c, bufio.NewReader(c)}
	if resp := k.ask(t, post); resp.Close {
		t.Fatal("the connection ends before the drain")
	}
	return k
}

// ask sends a text, and returns the answer.
func (k *kept) ask(t *testing.T, text string) *http.Response {
	t.Helper()
	if _, err := io.WriteString(k, text); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(k.r, nil)
	if err != nil {
		t.Fatalf("after %q: %v", text, err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp
}

// TestDrainAnswersWhatHasBegun: requests whose first byte came before the drain, or soon after
// its beginning, are answered, and the answers say that the connection ends. An idle connection does not
// hold the drain up.
func TestDrainAnswersWhatHasBegun(t *testing.T) {
	quiet(t)
	url, p := front(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}), nil)
	all := []*kept{keep(t, url), keep(t, url), keep(t, url), keep(t, url)}
	sent := []int{1, len(post) / 2, len(post) - 1, 0}
	for i, n := range sent {
		if _, err := io.WriteString(all[i], post[:n]); err != nil {
			t.Fatal(err)
		}
	}
	idle := keep(t, url)
	<-time.After(50 * time.Millisecond) // the bytes arrive
	began, drained := time.Now(), make(chan error, 1)
	go func() { drained <- p.Drain(context.Background()) }()
	<-time.After(clients.Grace / 2)
	if resp := all[3].ask(t, post); !resp.Close {
		t.Error("an answer in the drain does not say that the connection ends")
	}
	<-time.After(clients.Grace) // half a head is no idle connection
	for i := range 3 {
		if resp := all[i].ask(t, post[sent[i]:]); !resp.Close || resp.StatusCode != http.StatusOK {
			t.Errorf("with %d bytes before the drain: %s, closes: %v", sent[i], resp.Status, resp.Close)
		}
	}
	if _, err := idle.r.ReadByte(); err == nil {
		t.Error("an idle connection is sent something")
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the drain took %v", took)
	}
}
