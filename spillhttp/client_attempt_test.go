package spillhttp

import (
	"io"
	"net/http"
	"sync"
	"testing"
	"time"
)

// TestPlaceInFlight follows the place of one request to its end.
func TestPlaceInFlight(t *testing.T) {
	piped := func(req *http.Request) (*http.Response, error) {
		pr, pw := io.Pipe() // which may be read and closed at once
		go func() {
			_, _ = pw.Write([]byte("hello"))
			pw.Close()
		}()
		resp := answer(req, 200, "")
		resp.Body = pr
		return resp, nil
	}
	for name, end := range map[string]func(io.ReadCloser){
		"read to the end": func(b io.ReadCloser) { _, _ = io.Copy(io.Discard, b) },
		"closed":          func(b io.ReadCloser) { b.Close() },
		"all of it":       func(b io.ReadCloser) { _, _ = io.ReadAll(b); b.Close(); b.Close(); _, _ = b.Read(make([]byte, 1)) },
		"racing": func(b io.ReadCloser) {
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() { _, _ = io.ReadAll(b) })
				all.Go(func() { b.Close() })
			}
			all.Wait()
		},
	} {
		t.Run(name, func(t *testing.T) {
			rt := mustTransport(t, TransportConfig{Base: script(piped)})
			resp, err := rt.RoundTrip(newRequest(t, t.Context(), "GET", nil))
			if err != nil || inFlight(rt) != 1 {
				t.Fatalf("%v, %d in flight with an open body, want 1", err, inFlight(rt))
			}
			end(resp.Body)
			if s := rt.Stats(time.Now())["backend.example"].InFlight; s.InFlight != 0 || s.SurplusTotal != 0 {
				t.Errorf("%+v, want nothing in flight, released once", s)
			}
		})
	}
}

func TestNoBodyHoldsNothing(t *testing.T) {
	nothing := func(req *http.Request) (*http.Response, error) { return answer(req, 204, ""), nil }
	rt := mustTransport(t, TransportConfig{Base: script(nothing)})
	resp, err := rt.RoundTrip(newRequest(t, t.Context(), "GET", nil))
	if err != nil || resp.Body != http.NoBody {
		t.Errorf("%v, body %T, want http.NoBody as it came", err, resp.Body)
	}
	if n := inFlight(rt); n != 0 {
		t.Errorf("%d in flight although there is nothing to read", n)
	}
}
