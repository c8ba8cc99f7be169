package clients

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener with one connection.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// TestDrainHeadBeforeTheEnd: a client may have the whole answer, and send the next head, while its
// handler is not done yet. A drain that begins then waits for the rest of that head.
func TestDrainHeadBeforeTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, answered, done := New(0, 0), make(chan bool, 2), make(chan bool, 2)
		server := &http.Server{ConnContext: set.Open, ConnState: set.State, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "0")
			_ = http.NewResponseController(w).Flush()
			answered <- true
			<-done
		})}
		listener := make(pipes, 1)
		here, there := net.Pipe()
		listener <- &conn{Conn: there, timeout: -1}
		go func() { _ = server.Serve(listener) }()
		defer close(listener)
		defer func() { _ = here.Close() }()

		const head = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
		in := bufio.NewReader(here)
		ask := func(text string) {
			if _, err := io.WriteString(here, text); err != nil {
				t.Fatal(err)
			}
			if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("%v, %v", resp, err)
			}
			<-answered
		}
		ask(head)
		time.Sleep(time.Millisecond)
		if _, err := io.WriteString(here, head[:1]); err != nil {
			t.Fatal(err)
		}
		done <- true
		synctest.Wait()
		drained := make(chan bool)
		go func() { set.Drain(t.Context(), 10*time.Second); close(drained) }()
		time.Sleep(2 * Grace)
		ask(head[1:])
		done <- true
		begun := time.Now()
		<-drained
		if took := time.Since(begun); took < Grace || took > 2*Grace {
			t.Errorf("the idle connection is closed after %v, want %v", took, Grace)
		}
	})
}

// TestDrainSecondWithoutRequests: a connection of HTTP/2 may have had no request yet, as balancers open some in advance. It is
// no half of a head that a drain waits for, and it ends with a GOAWAY: otherwise a request that is on its way would be lost.
func TestDrainSecondWithoutRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := New(0, 0)
		server := &http.Server{ConnContext: set.Open, ConnState: set.State, Protocols: new(http.Protocols)}
		server.Protocols.SetUnencryptedHTTP2(true)
		listener := make(pipes, 1)
		here, there := net.Pipe()
		listener <- &conn{Conn: there, timeout: -1}
		go func() { _ = server.Serve(listener) }()
		var got bytes.Buffer
		ended := make(chan bool)
		go func() { _, _ = io.Copy(&got, here); close(ended) }()
		const settings = "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
		for _, text := range []string{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings, settings[:4] + "\x01" + settings[5:]} { // and ACK
			if _, err := io.WriteString(here, text); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		begun := time.Now()
		set.Drain(t.Context(), 10*time.Second)
		if took := time.Since(begun); took > 0 {
			t.Errorf("it holds a drain up for %v", took)
		}
		close(listener)
		if err := server.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		<-ended
		if !bytes.Contains(got.Bytes(), goAway[:len(goAway)-8]) {
			t.Errorf("it ends without GOAWAY: %q", got.Bytes())
		}
	})
}
