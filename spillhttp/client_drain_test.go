package spillhttp

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestGivenUpBody: before the wait for a retry, the body of a failed answer is read if small,
// and always closed.
func TestGivenUpBody(t *testing.T) {
	for _, row := range []struct {
		name  string
		body  string
		known bool
		left  int // unread after a bounded drain
	}{
		{"small", "sorry", true, 0},
		{"small, of unknown length", "sorry", false, 0},
		{"large", strings.Repeat("x", 3*drainBytes), true, 3 * drainBytes},
		{"large, of unknown length", strings.Repeat("x", 3*drainBytes), false, 2 * drainBytes},
	} {
		t.Run(row.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				source := strings.NewReader(row.body)
				body := &reply{Reader: source}
				first := func(req *http.Request) (*http.Response, error) {
					resp := answer(req, 503, row.body, "retry-after", "10")
					resp.Body = body
					if !row.known {
						resp.ContentLength = -1
					}
					return resp, nil
				}
				rt := mustTransport(t, TransportConfig{Base: script(first, status(200)), Egress: eager})
				time.AfterFunc(5*time.Second, func() { // in the middle of the wait
					if body.closed.Load() == 0 || source.Len() != row.left {
						t.Errorf("closed %d times, %d bytes unread, want closed and %d", body.closed.Load(), source.Len(), row.left)
					}
					if n := inFlight(rt); n != 0 {
						t.Errorf("%d in flight during the wait", n)
					}
				})
				start := time.Now()
				roundTrip(t, rt, newRequest(t, t.Context(), "GET", nil))
				if waited := time.Since(start); waited < 10*time.Second {
					t.Errorf("waited %v, the backend asked for 10 s", waited)
				}
			})
		})
	}
}

// TestSlowBody: an answer whose body does not come does not hold up the retry.
func TestSlowBody(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pr, pw := io.Pipe()
		defer pw.Close()
		stuck := func(req *http.Request) (*http.Response, error) {
			resp := answer(req, 503, "")
			resp.Body, resp.ContentLength = pr, -1
			return resp, nil
		}
		rt := mustTransport(t, TransportConfig{Base: script(stuck, status(200)), Egress: eager})
		start := time.Now()
		roundTrip(t, rt, newRequest(t, t.Context(), "GET", nil))
		if took := time.Since(start); took != drainTime {
			t.Errorf("took %v, want %v", took, drainTime)
		}
	})
}
