package query

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/adminclient"
)

// good is the least that is a State.
const good = `{"time":"2026-11-20T12:00:00Z","started":"2026-11-20T11:00:00Z","counts":{"offered":7},"name":"p1"}`

const token = "0123456789abcdef"

// tokenFile returns a file with a token.
func tokenFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// fetch asks one address.
func fetch(t *testing.T, c Config, address string) (*State, *Problem) {
	t.Helper()
	if c.Timeout == 0 {
		c.Timeout = time.Minute
	}
	client, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	target, err := Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return client.Fetch(t.Context(), target)
}

// text returns a handler that answers with a status and a text.
func text(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text))
	}
}

// TestProblems: each answer that is no state has a problem with what to do, and no character that moves a cursor.
func TestProblems(t *testing.T) {
	t.Parallel()
	endless := func(w http.ResponseWriter, r *http.Request) {
		for chunk := bytes.Repeat([]byte(" "), 1<<16); ; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}
	for name, row := range map[string]struct {
		answer     http.HandlerFunc
		kind, want string
	}{
		"no token":    {text(401, "no token was given\n"), Unauthorized, "--token-file"},
		"forbidden":   {text(403, "this host is not \x1b[2Jknown\nsecond"), Forbidden, `this host is not \x1b[2Jknown`},
		"not found":   {text(404, "404 page not found\n"), Unexpected, "it answers 404 to /api/v1/state"},
		"redirect":    {http.RedirectHandler("http://127.0.0.1:1/", http.StatusFound).ServeHTTP, Unexpected, "it answers 302"},
		"overloaded":  {text(503, "later"), Unexpected, "later"},
		"html":        {text(200, "<html>"), Unexpected, "not the state"},
		"other JSON":  {text(200, `{"status":"up"}`), Unexpected, "not the state"},
		"a list":      {text(200, `[]`), Unexpected, "not the state"},
		"half":        {text(200, good[:40]), Unexpected, "not the state"},
		"types":       {text(200, strings.Replace(good, "7", `"many"`, 1)), Unexpected, "not the state"},
		"negative":    {text(200, strings.Replace(good, "7", "-7", 1)), Unexpected, "not the state"},
		"deep":        {text(200, strings.Repeat("[", 100_000)), Unexpected, "not the state"},
		"old":         {text(200, `{"time":"2026-11-20T12:00:00Z"}`), Outdated, "too old"},
		"endless":     {endless, TooLarge, "more than 2 MiB"},
		"long header": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) }, Unreachable, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(row.answer)
			defer s.Close()
			state, p := fetch(t, Config{}, s.URL)
			if state != nil || p == nil || p.Kind != row.kind || !strings.Contains(p.Text+" "+p.Do+" "+p.Detail, row.want) || p.Do == "" {
				t.Fatalf("%+v, want %s and %q", p, row.kind, row.want)
			}
			if strings.ContainsRune(p.Text+p.Do+p.Detail, '\x1b') {
				t.Errorf("%q has an escape", p.Text)
			}
		})
	}
}

// TestSlow: an answer that does not come, or does not end, takes no longer than the timeout.
func TestSlow(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"silent": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"drips": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte(" "))
				_ = http.NewResponseController(w).Flush()
				select {
				case <-r.Context().Done():
				case <-time.After(time.Millisecond):
				}
			}
		},
	} {
		s := httptest.NewServer(answer)
		began := time.Now()
		if _, p := fetch(t, Config{Timeout: 100 * time.Millisecond}, s.URL); p == nil || p.Kind != Timeout {
			t.Errorf("%s: %+v, want a timeout", name, p)
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("%s: it took %v", name, took)
		}
		s.Close()
	}
}

// TestToken: the token goes to the address alone, is read again for each request, and is in no text.
func TestToken(t *testing.T) {
	var elsewhere atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Store(true) }))
	defer other.Close()
	want := "Bearer " + token
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != want:
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/away"+path:
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		default:
			_, _ = w.Write([]byte(good))
		}
	}))
	defer s.Close()
	file := tokenFile(t, token)
	if state, p := fetch(t, Config{TokenFile: file}, s.URL); p != nil || state.Counts.Offered != 7 || state.Name != "p1" {
		t.Fatalf("%+v, %+v", state, p)
	}
	if _, p := fetch(t, Config{TokenFile: file}, s.URL+"/away"); p == nil || elsewhere.Load() {
		t.Errorf("a redirect was followed: %+v", p)
	}
	want = "Bearer another token of it"
	if _, p := fetch(t, Config{TokenFile: file}, s.URL); p == nil || p.Kind != Unauthorized || strings.Contains(p.Text+p.Do, token) || !strings.Contains(p.Text, "rejects the token") {
		t.Errorf("%+v", p)
	}
	for _, file := range []string{tokenFile(t, "short"), "/nowhere/at/all"} {
		if _, err := New(Config{TokenFile: file, Timeout: time.Second}); err == nil || !strings.Contains(err.Error(), "--token-file: ") {
			t.Errorf("%s: %v", file, err)
		}
	}
	client, err := New(Config{TokenFile: file, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, p := client.Fetch(t.Context(), Target{at: adminclient.Target{URL: s.URL}}); p == nil || p.Kind != Unauthorized {
		t.Errorf("without the file: %+v", p)
	}
}

// TestTLS: a certificate is verified, by the certificates of this host or of --ca-file.
func TestTLS(t *testing.T) {
	s := httptest.NewTLSServer(text(200, good))
	defer s.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	if state, p := fetch(t, Config{CAFile: ca}, s.URL); p != nil || state.Counts.Offered != 7 {
		t.Errorf("%+v, %+v", state, p)
	}
	if _, p := fetch(t, Config{}, s.URL); p == nil || p.Kind != Certificate || !strings.Contains(p.Do, "--ca-file") {
		t.Errorf("with the certificates of this host: %+v", p)
	}
	if _, p := fetch(t, Config{}, strings.Replace(s.URL, "https", "http", 1)); p == nil || p.Kind != Unexpected || !strings.Contains(p.Do, "https://") {
		t.Errorf("without TLS: %+v", p)
	}
	plain := httptest.NewServer(text(200, good))
	defer plain.Close()
	if _, p := fetch(t, Config{}, strings.Replace(plain.URL, "http", "https", 1)); p == nil || p.Kind != Unexpected || !strings.Contains(p.Do, "http://") {
		t.Errorf("TLS to a server without: %+v", p)
	}
	for _, file := range []string{"/nowhere/at/all", tokenFile(t, token)} {
		if _, err := New(Config{CAFile: file}); err == nil || !strings.Contains(err.Error(), "--ca-file: ") {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// TestUnreachable asks where nothing listens, and over a Unix socket.
func TestUnreachable(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	if _, p := fetch(t, Config{}, address); p == nil || p.Kind != Unreachable || p.Text != "connection refused" {
		t.Errorf("%+v", p)
	}
	socket := filepath.Join(t.TempDir(), "s")
	if _, p := fetch(t, Config{}, "unix:"+socket); p == nil || p.Kind != Unreachable || p.Text != "no such file or directory" {
		t.Errorf("%+v", p)
	}
	u, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(text(200, good))
	s.Listener = u
	s.Start()
	defer s.Close()
	if state, p := fetch(t, Config{}, "unix:"+socket); p != nil || state.Counts.Offered != 7 {
		t.Errorf("%+v", p)
	}
}

// TestDecodeHostile: numbers are finite, lists are bounded, and texts do nothing to a terminal.
func TestDecodeHostile(t *testing.T) {
	rows := strings.Repeat(`{"name":"\u001b]0;x\u0007\u202eevil\u009b2J","count":1},`, 5000)
	hostile := strings.TrimSuffix(good, "}") + `,"mean":{"p99_ms":1e308,"in_flight":-5,"limit":1e300},"top":{"customers":{"rows":[` + strings.TrimSuffix(rows, ",") + `]}},` +
		`"verdict":{"headline":"` + strings.Repeat("x", 10_000) + `"},"reasons":[{"policy":"\u001b[31m","total":[-1,1e300,0,0,5]}]}`
	s, p := Decode([]byte(hostile))
	if p != nil {
		t.Fatal(p)
	}
	if *s.Mean.P99 != maxNumber || s.Mean.InFlight != 0 || s.Reasons[0].Total[0] != 0 || s.Reasons[0].Total[1] != maxNumber {
		t.Errorf("numbers %+v %v", s.Mean, s.Reasons[0].Total)
	}
	if n := len(s.Top.Customers.Rows); n != mostRows || s.Top.Customers.Others == 0 {
		t.Errorf("%d rows, others %d", n, s.Top.Customers.Others)
	}
	if got := s.Top.Customers.Rows[0].Name; got != `\x1b]0;x\a\u202eevil\u009b2J` {
		t.Errorf("the name is %q", got)
	}
	if len(s.Verdict.Headline) > maxText+10 || s.Reasons[0].Policy != `\x1b[31m` {
		t.Errorf("texts %q, %q", s.Verdict.Headline, s.Reasons[0].Policy)
	}
	if _, err := json.Marshal(s); err != nil {
		t.Error(err)
	}
}
