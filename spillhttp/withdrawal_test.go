package spillhttp

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/shed"
)

// When the client gives up a request that waits, the request leaves the queue at once, over real connections.
func TestWithdrawal(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"HTTP1", "h2c"} {
		for _, body := range []int{0, 100, drainBytes, 100_000} {
			if protocol == "HTTP1" && body > drainBytes {
				continue // net/http looks for the client when all of the body was read
			}
			t.Run(fmt.Sprintf("%s, %d bytes", protocol, body), func(t *testing.T) {
				t.Parallel()
				entered, leave := make(chan struct{}), make(chan struct{})
				h := mustHandler(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
					entered <- struct{}{}
					<-leave
				}), ingress.Config{MaxInFlight: 1, Shed: shed.Config{MaxWait: 10 * time.Second}}, HandlerConfig{})
				url, client := overLoopback(t, h, protocol)
				ask := func(ctx context.Context, method string, body int) chan error {
					done := make(chan error, 1)
					req := must(http.NewRequestWithContext(ctx, method, url, strings.NewReader(strings.Repeat("x", body))))
					go func() {
						resp, err := client.Do(req)
						if err == nil {
							err = resp.Body.Close()
						}
						done <- err
					}()
					return done
				}
				served := ask(t.Context(), http.MethodGet, 0)
				<-entered
				ask(t.Context(), http.MethodGet, 0) // the first to wait
				until(t, "another one waits", func() bool { return waitingIn(h) == 1 })
				ctx, cancel := context.WithCancel(t.Context())
				second := ask(ctx, http.MethodPost, body)
				until(t, "it waits", func() bool { return waitingIn(h) == 2 })
				cancel()
				<-second
				took := until(t, "it has left", func() bool { return waitingIn(h) == 1 })
				if took > time.Second { // mostly 0.1 to 1 ms; the processors may be busy, and the maximum wait is 10 s
					t.Errorf("it left after %v", took)
				}
				t.Logf("left after %v", took)
				close(leave)
				<-entered
				if err := <-served; err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// A body that was read while its request waited is whole for the handler, and one that breaks off fails there.
func TestBodyOfAWaiter(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	var got [3]string
	h := mustHandler(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			entered <- struct{}{}
			<-leave
			return
		}
		b, err := io.ReadAll(r.Body)
		got[len(r.URL.Path)-1] = fmt.Sprint(len(b), err)
	}), ingress.Config{MaxInFlight: 1, Shed: shed.Config{MaxWait: 10 * time.Second}}, HandlerConfig{})
	h.looks.Store(1 << 40) // as in an overload
	url, client := overLoopback(t, h, "HTTP1")
	var all sync.WaitGroup
	ask := func(method, path string, length int, body io.Reader) {
		all.Go(func() {
			req := must(http.NewRequestWithContext(t.Context(), method, url+path, body))
			req.ContentLength = int64(length)
			if resp, err := client.Do(req); err == nil {
				resp.Body.Close()
			}
		})
	}
	ask(http.MethodGet, "/", 0, nil)
	<-entered
	late, writer := io.Pipe()
	ask(http.MethodPost, "/", drainBytes, strings.NewReader(strings.Repeat("x", drainBytes)))
	ask(http.MethodPost, "/2", 5, late)
	until(t, "they wait", func() bool { return waitingIn(h) == 2 })
	_, _ = io.WriteString(writer, "hel")
	close(leave)
	_, _ = io.WriteString(writer, "lo")
	all.Wait()
	if want := [3]string{"16384 <nil>", "5 <nil>"}; got != want {
		t.Errorf("read %q, want %q", got, want)
	}
}

func waitingIn(h *Handler) int {
	s := h.ingress.Stats(time.Now())
	return s.InFlight.Waiting + s.Shed.Waiting
}

// until waits until something is true, and returns how long that took.
func until(t *testing.T, what string, is func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !is() {
		if time.Since(began) > 15*time.Second {
			t.Fatalf("not within 15 s: %s", what)
		}
		time.Sleep(100 * time.Microsecond)
	}
	return time.Since(began)
}

// overLoopback serves h on a real port, and returns its URL and a client.
func overLoopback(t *testing.T, h *Handler, protocol string) (url string, c *http.Client) {
	t.Helper()
	l := must((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"))
	protocols := new(http.Protocols)
	protocols.SetHTTP1(protocol == "HTTP1")
	protocols.SetUnencryptedHTTP2(protocol == "h2c")
	server := &http.Server{Handler: h, Protocols: protocols, ErrorLog: quiet}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = h.Serve(server, l)
	}()
	base := &http.Transport{Protocols: protocols}
	t.Cleanup(func() {
		base.CloseIdleConnections()
		_ = server.Close()
		<-served
	})
	return "http://" + l.Addr().String(), &http.Client{Transport: base}
}
