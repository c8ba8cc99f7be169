package earlytest

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Serve serves requests with s from l, and returns when l is closed.
type Serve func(s *http.Server, l net.Listener) error

// Play lets a server serve c, in a synctest bubble. It returns the answers, and how many requests h
// has seen.
func Play(t testing.TB, c *Client, h http.Handler, serve Serve) (answers string, seen int) {
	t.Helper()
	l := &one{make(chan net.Conn, 1), make(chan struct{})}
	l.conn <- c
	var mu sync.Mutex
	server := &http.Server{ErrorLog: log.New(io.Discard, "", 0)} //nolint:gosec // the client is one of a test
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen++
		mu.Unlock()
		h.ServeHTTP(w, r)
	})
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = serve(server, l)
	}()
	synctest.Wait()
	time.Sleep(time.Second) //nolint:forbidigo // virtual time, for connections that linger
	close(l.done)
	<-served
	return c.answers.String(), seen
}

// Both returns the answers to a client that sends pieces, with early rejection and without, and how
// many requests h has seen in each case. net/http does not answer a rest of less than four bytes,
// unless it is the first that it sees. If the stream has such a rest, both get it without these
// bytes.
func Both(t testing.TB, pieces []string, eager bool, h http.Handler, early Serve) (got, want string, some, all int) {
	t.Helper()
	const garbage = "400 Content-Type: text/plain; charset=utf-8 \"400 Bad Request\"\n"
	answers := func(pieces []string, serve Serve) (string, int) {
		c := NewClient(pieces...)
		c.Eager = eager
		got, seen := Play(t, c, h, serve)
		return Unify(t, got), seen
	}
	got, some = answers(pieces, early)
	want, all = answers(pieces, (*http.Server).Serve)
	for n := 1; n < 4 && got == want+garbage; n++ {
		got, _ = answers(withoutLast(n, pieces), early)
		want, _ = answers(withoutLast(n, pieces), (*http.Server).Serve)
	}
	return got, want, some, all
}

// withoutLast returns pieces without their last n bytes.
func withoutLast(n int, pieces []string) []string {
	pieces = slices.Clone(pieces)
	for i, p := range slices.Backward(pieces) {
		pieces[i] = p[:max(len(p)-n, 0)]
		n -= len(p) - len(pieces[i])
	}
	return pieces
}

// proto is the start of each answer.
const proto = "HTTP/1.1 "

// Unify makes answers comparable: it removes dates, sorts fields, and replaces retry delays.
func Unify(t testing.TB, answers string) string {
	t.Helper()
	var all strings.Builder
	for r := bufio.NewReader(strings.NewReader(answers)); ; {
		if _, err := r.Peek(1); err != nil {
			return all.String()
		}
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			fmt.Fprintf(&all, "%v\n", err)
			return all.String()
		}
		var body []byte
		// Otherwise this answer is for HEAD, and has no body.
		if next, _ := r.Peek(len(proto)); string(next) != proto {
			body, _ = io.ReadAll(resp.Body) // a body that ends too soon is compared as it is
		}
		resp.Header.Del("Date")
		fmt.Fprintf(&all, "%d %s %q\n", resp.StatusCode, textOf(resp.Header), body)
	}
}

func textOf(h http.Header) string {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(h)) {
		lines = append(lines, key+": "+strings.Join(h[key], "; "))
	}
	return strings.Join(lines, ", ")
}
