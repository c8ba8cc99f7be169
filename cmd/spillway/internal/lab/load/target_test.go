package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/process"
)

var even = []float64{1, 1, 1, 1}

func config(url string) *Service {
	return &Service{Target: url, Rate: maxRate, Duration: maxDuration, Workers: 1, Timeout: 10 * time.Second}
}

// stopAfter returns a handler that ends the load when request n comes, and a context that it
// then cancels.
func stopAfter(t *testing.T, n int64, h http.HandlerFunc) (context.Context, http.HandlerFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var requests atomic.Int64
	return ctx, func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == n {
			cancel()
			return
		}
		h(w, r)
	}
}

// drive sends load to a server on a loopback address until request n.
func drive(t *testing.T, n int64, c *Service, h http.HandlerFunc) *Result {
	t.Helper()
	ctx, h := stopAfter(t, n, h)
	s := httptest.NewServer(h)
	defer s.Close()
	c.Target = s.URL
	r, err := c.Run(ctx, even)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func total(r *Result) (all Class) {
	for _, c := range r.Classes {
		all.Served += c.Served
		all.Rejected += c.Rejected
		all.TimedOut += c.TimedOut
		all.Redirected += c.Redirected
		all.Failed += c.Failed
	}
	return all
}

func TestAnswersAreCounted(t *testing.T) {
	var turn atomic.Int64
	r := drive(t, 81, config(""), func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Request-Criticality") == "" {
			t.Error("a request without a class")
		}
		w.WriteHeader([]int{200, 204, 503, 429, 500, 302, 404, 200}[turn.Add(1)%8])
	})
	if all := total(r); all != (Class{Served: 30, Rejected: 20, Redirected: 10, Failed: 20}) {
		t.Errorf("%+v", all)
	}
	var text strings.Builder
	if err := r.WriteTable(&text); err != nil || !r.Answered() ||
		!strings.HasPrefix(text.String(), "INTERRUPTED: ") || !strings.Contains(text.String(), "CRITICAL_PLUS  ") {
		t.Errorf("%v\n%s", err, &text)
	}
}

// A target on an address elsewhere is rejected, unless the user owns it; so is a name that is
// on loopback with one address, and elsewhere with another.
func TestOnlyOwnTargets(t *testing.T) {
	for _, row := range []struct {
		url, found string
		own, ok    bool
	}{
		{"http://localhost:80/", "127.0.0.1", false, true},
		{"http://localhost", "::1", false, true},
		{"https://a.test/", "::ffff:127.0.0.1", false, true},
		{"http://a.test/", "127.0.0.1 192.0.2.1", false, false},
		{"http://a.test/", "192.0.2.1 127.0.0.1", false, false},
		{"http://a.test/", "192.0.2.1", true, true},
		{"http://a.test/", "10.0.0.1", false, false},
		{"http://a.test/", "0.0.0.0", false, false},
		{"http://a.test/", "::", false, false},
		{"http://a.test/", "fe80::1%lo", false, false},
		{"http://a.test/", "::ffff:192.0.2.1", false, false},
		{"http://a.test/", "", true, false},
		{"http://u:p@localhost/", "127.0.0.1", true, false},
		{"ftp://localhost/", "127.0.0.1", true, false},
		{"http://localhost:0/", "127.0.0.1", true, false},
		{"http://localhost:70000/", "127.0.0.1", true, false},
		{"localhost", "127.0.0.1", true, false},
		{"", "127.0.0.1", true, false},
	} {
		c := config(row.url)
		c.IOwnThisTarget = row.own
		_, err := c.resolve(t.Context(), func(context.Context, string, string) (all []netip.Addr, err error) {
			for a := range strings.FieldsSeq(row.found) {
				all = append(all, netip.MustParseAddr(a))
			}
			return all, nil
		})
		if _, field := errors.AsType[*process.UsageError](err); (err == nil) != row.ok || err != nil && !field {
			t.Errorf("%s at %s: %v", row.url, row.found, err)
		}
	}
}

// TestRebinding has a name that moves from loopback to an address elsewhere: it is looked up
// once, and the address elsewhere is rejected when it is dialed.
func TestRebinding(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	port := netip.MustParseAddrPort(l.Addr().String()).Port()
	lookups := 0
	g, err := config(fmt.Sprintf("http://a.test:%d", port)).resolve(t.Context(), func(context.Context, string, string) ([]netip.Addr, error) {
		lookups++
		if lookups > 1 {
			return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"a.test:80", "192.0.2.1:80", "127.0.0.1:1"} { // whatever the transport asks for
		conn, err := g.dial(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if conn.RemoteAddr().String() != l.Addr().String() {
			t.Errorf("connected to %v", conn.RemoteAddr())
		}
		_ = conn.Close()
	}
	if lookups != 1 {
		t.Errorf("%d lookups", lookups)
	}
	d := net.Dialer{Control: g.control}
	for _, address := range []string{fmt.Sprintf("192.0.2.1:%d", port), fmt.Sprintf("127.0.0.2:%d", port), "127.0.0.1:1"} {
		if _, err := d.DialContext(t.Context(), "tcp", address); !errors.Is(err, errElsewhere) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	r := drive(t, 11, config(""), func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	if all := total(r); elsewhere.Load() != 0 || all != (Class{Redirected: 10}) {
		t.Errorf("%d requests elsewhere, %+v", elsewhere.Load(), all)
	}
}

func TestTargetThatNeverAnswers(t *testing.T) {
	c := config("")
	c.Timeout = time.Millisecond
	var silent net.Listener
	ctx, cancel := context.WithCancel(t.Context())
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	go func() { // accepts, and says nothing
		var open []net.Conn
		for {
			conn, err := silent.Accept()
			if err != nil {
				break
			}
			if open = append(open, conn); len(open) == 5 {
				cancel()
			}
		}
		for _, conn := range open {
			_ = conn.Close()
		}
	}()
	c.Target = "http://" + silent.Addr().String()
	r, err := c.Run(ctx, even)
	if err != nil {
		t.Fatal(err)
	}
	if all := total(r); all.TimedOut < 4 || all.Served+all.Rejected+all.Failed > 0 || r.Answered() {
		t.Errorf("%+v", all)
	}
}

// endless is a body without an end.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	e.read += len(p)
	return len(p), nil
}

func (e *endless) Close() error { return nil }

type respond func(*http.Request) (*http.Response, error)

func (f respond) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestHugeBodies(t *testing.T) {
	e := new(endless)
	c := config("")
	a, why := c.call(t.Context(), respond(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: e}, nil
	}), "http://127.0.0.1/", 0)
	if a != failed || why == nil || e.read > maxBody+64<<10 {
		t.Errorf("%v (%v) after %d bytes", a, why, e.read)
	}
	r := drive(t, 3, config(""), func(w http.ResponseWriter, _ *http.Request) {
		for range 3 << 4 {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	})
	if all := total(r); all.Failed != 2 {
		t.Errorf("%+v", all)
	}
	r = drive(t, 3, config(""), func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Long", strings.Repeat("a", 2*maxHeader))
	})
	if all := total(r); all.Failed != 2 {
		t.Errorf("%+v", all)
	}
}

// TestFirstFailure: a table of failures says why, and has no latencies of nothing.
func TestFirstFailure(t *testing.T) {
	r := drive(t, 3, config(""), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	var text strings.Builder
	if err := r.WriteTable(&text); err != nil || !strings.Contains(text.String(), "the first failure: it answered 418\n") || strings.Contains(text.String(), "  0.0") {
		t.Errorf("%v, %s", err, text.String())
	}
	r = drive(t, 3, config(""), func(http.ResponseWriter, *http.Request) {})
	if text.Reset(); r.WriteTable(&text) != nil || strings.Contains(text.String(), "failure") {
		t.Error(text.String())
	}
}

// TestRateAndDuration runs in virtual time, with a target that is quick and one that is slow.
func TestRateAndDuration(t *testing.T) {
	for _, row := range []struct {
		takes    time.Duration
		least, n int
		says     string
	}{
		{0, 19_990, 20_001, "http://127.0.0.1/, 15.0 s\n"},
		{1100 * time.Millisecond, 120, 132, "http://127.0.0.1/, 15.0 s\n9/s were sent, not 1333/s: all 10 workers waited for answers (--workers)\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := Service{Rate: 20_000.0 / 15, Duration: 15 * time.Second, Workers: 10, Timeout: 2 * time.Second}
			inFlight, most, start := atomic.Int64{}, atomic.Int64{}, time.Now()
			r := c.drive(t.Context(), "http://127.0.0.1/", respond(func(r *http.Request) (*http.Response, error) {
				most.Store(max(most.Load(), inFlight.Add(1)))
				defer inFlight.Add(-1)
				select {
				case <-time.After(row.takes):
				case <-r.Context().Done():
					return nil, r.Context().Err()
				}
				return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("ok"))}, nil
			}), even)
			if all := total(r); all.Served < row.least || all.Served > row.n || most.Load() > 10 || time.Since(start) > 15*time.Second {
				t.Errorf("%+v, %d at once, %v", all, most.Load(), time.Since(start))
			}
			var table strings.Builder
			if err := r.WriteTable(&table); err != nil || !strings.HasPrefix(table.String(), row.says+"criticality") {
				t.Errorf("%v, want %q in\n%s", err, row.says, table.String())
			}
		})
	}
}

func TestBounds(t *testing.T) {
	for flag, change := range map[string]func(*Service){
		"rate":     func(c *Service) { c.Rate = maxRate + 1 },
		"duration": func(c *Service) { c.Duration = maxDuration + 1 },
		"workers":  func(c *Service) { c.Workers = maxWorkers + 1 },
		"timeout":  func(c *Service) { c.Timeout = 0 },
	} {
		c := config("http://127.0.0.1:1")
		change(c)
		_, err := c.Run(t.Context(), even)
		if e, ok := errors.AsType[*process.UsageError](err); !ok || e.Flag != flag {
			t.Errorf("%s: %v", flag, err)
		}
	}
}
