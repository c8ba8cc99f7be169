package spillhttp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway/ingress"
)

// TestWriterKeepsItsAbilities: what a handler can do with its writer, it still can.
func TestWriterKeepsItsAbilities(t *testing.T) {
	handler := func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		if err := errors.Join(control.SetReadDeadline(time.Time{}), control.SetWriteDeadline(time.Now().Add(time.Hour))); err != nil {
			t.Error(err)
		}
		switch r.URL.Path {
		case "/flush":
			_, _ = io.WriteString(w, "first ")
			w.(http.Flusher).Flush()
			if err := control.Flush(); err != nil {
				t.Error(err)
			}
			_, _ = io.Copy(w, strings.NewReader("second"))
		case "/hijack":
			conn, rw, err := control.Hijack()
			if r.ProtoMajor == 2 {
				if !errors.Is(err, http.ErrNotSupported) {
					t.Errorf("HTTP/2: %v", err)
				}
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			line, _ := rw.ReadString('\n')
			fmt.Fprint(conn, "echo ", line)
		}
	}
	everyWay(t, func(t *testing.T, protocol string, early bool) {
		h := mustHandler(t, http.HandlerFunc(handler), ingress.Config{Shed: patient}, HandlerConfig{})
		h.looks.Store(lookOn)
		s := open(t, protocol, h, early)
		defer s.close()
		r := newRequest(t, t.Context(), http.MethodGet, nil)
		r.URL.Path = "/flush"
		if got := readAll(t, must(s.base.RoundTrip(r))); got != "first second" {
			t.Errorf("%q", got)
		}
		r = newRequest(t, t.Context(), http.MethodGet, nil)
		r.URL.Path = "/hijack"
		if protocol == "HTTP1" {
			r.Header.Set("Connection", "Upgrade")
			r.Header.Set("Upgrade", "echo")
		}
		resp := must(s.base.RoundTrip(r))
		defer resp.Body.Close()
		if body, ok := resp.Body.(io.ReadWriter); ok {
			fmt.Fprint(body, "GET / HTTP/1.1\r\n")
			if line, err := bufio.NewReader(body).ReadString('\n'); line != "echo GET / HTTP/1.1\r\n" {
				t.Errorf("%q, %v", line, err)
			}
		} else if protocol == "HTTP1" {
			t.Errorf("%d, want the connection", resp.StatusCode)
		}
		resp.Body.Close()
		synctest.Wait()
		nothingLeft(t, h)
	})
}

// The bytes of a long answer are counted where an int has 32 bits.
func TestLongAnswerIsCounted(t *testing.T) {
	var r response
	for range 3 {
		if !r.blocks(math.MaxInt32) || r.unsent != unblocked+1 {
			t.Fatalf("%d bytes are unsent, want %d", r.unsent, unblocked+1)
		}
	}
}
