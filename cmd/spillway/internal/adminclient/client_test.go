package adminclient

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/internal/admin/access"
)

// serve returns the target of a server.
func serve(t *testing.T, h http.HandlerFunc) Target {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return Target{URL: s.URL}
}

// client returns a Client that waits for longer than a test.
func client(t *testing.T, c Config) *Client {
	t.Helper()
	if c.Timeout == 0 {
		c.Timeout = time.Minute
	}
	if c.MaxBody == 0 {
		c.MaxBody = 1000
	}
	made := New(c)
	t.Cleanup(made.Close)
	return made
}

// TestDo: the process gets the method, the path, the body and the token, and its answer comes back.
func TestDo(t *testing.T) {
	echo := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		_, _ = body.ReadFrom(r.Body)
		fmt.Fprint(w, r.Method, " ", r.URL.Path, " ", body.String(), " ", r.Header.Get("Authorization"))
	})
	for _, row := range []struct {
		token access.Token
		want  string
	}{
		{nil, "POST /p observe "},
		{access.Text("0123456789abcdef"), "POST /p observe Bearer 0123456789abcdef"},
	} {
		got, err := client(t, Config{Token: row.token}).Do(t.Context(), echo, http.MethodPost, "/p", "observe")
		if err != nil || string(got) != row.want {
			t.Errorf("%q, %v, want %q", got, err, row.want)
		}
	}
}

// TestAnswersThatAreNone: the error says what came in place of an answer.
func TestAnswersThatAreNone(t *testing.T) {
	elsewhere := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a redirect is followed") })
	for name, row := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"status":    {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "why", http.StatusForbidden) }, "it answers 403: why"},
		"redirect":  {http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect).ServeHTTP, "it answers 307"},
		"too large": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("x", 1001)) }, ErrTooLarge.Error()},
	} {
		got, err := client(t, Config{}).Do(t.Context(), serve(t, row.answer), http.MethodGet, "/", "")
		if err == nil || !strings.HasPrefix(err.Error(), row.want) || got != nil {
			t.Errorf("%s: %q, %v, want %q", name, got, err, row.want)
		}
	}
	whole := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("x", 1000)) })
	if got, err := client(t, Config{}).Do(t.Context(), whole, http.MethodGet, "/", ""); err != nil || len(got) != 1000 {
		t.Errorf("%d bytes, %v, want as many as are allowed", len(got), err)
	}
}

// TestTokenThatCannotBeRead: without the token nothing is sent.
func TestTokenThatCannotBeRead(t *testing.T) {
	to := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a request without its token is sent") })
	_, err := client(t, Config{Token: access.File("/nowhere/at/all")}).Do(t.Context(), to, http.MethodGet, "/", "")
	if _, ok := errors.AsType[TokenError](err); !ok {
		t.Errorf("%v, want a TokenError", err)
	}
}

// TestDial: a target may be elsewhere than its URL says, and two targets with one URL are two processes.
func TestDial(t *testing.T) {
	c := client(t, Config{})
	for _, name := range []string{"one", "two"} {
		at := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, name, " as ", r.Host) })
		to := Target{URL: "http://localhost", Dial: strings.TrimPrefix(at.URL, "http://")}
		if got, err := c.Do(t.Context(), to, http.MethodGet, "/", ""); err != nil || string(got) != name+" as localhost" {
			t.Errorf("%q, %v, want the answer of %s", got, err, name)
		}
	}
}
