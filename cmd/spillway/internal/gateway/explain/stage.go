package explain

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"

	"google.golang.org/grpc/test/bufconn"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/httpproxy"
)

// A rehearsal is a listener without connections, with a stage instead of its endpoints.
type rehearsal struct {
	*httpproxy.Rehearsal

	stage  *stage
	events sync.Map // the first event of each policy's gate, by policy
}

// newRehearsal returns a rehearsal of a configuration with its defaults. It must be closed.
func newRehearsal(c *config.Config, l *config.Listener) (*rehearsal, error) {
	x := &rehearsal{stage: newStage()}
	var err error
	observer := spillway.ObserverFunc(func(e spillway.Event) { x.events.LoadOrStore(e.Policy, e) })
	if x.Rehearsal, err = httpproxy.Rehearse(c, l, x.stage.dial, observer); err != nil {
		x.stage.close()
		return nil, err
	}
	return x, nil
}

func (x *rehearsal) play(r *http.Request) (answer answered) {
	defer func() {
		if p := recover(); p != nil && p != http.ErrAbortHandler { //nolint:errorlint // as net/http compares it
			panic(p) //nolint:forbidigo // it goes on
		}
	}()
	answer.header = make(http.Header)
	x.ServeHTTP(&answer, r)
	return answer
}

// close ends the rehearsal. After it, all events of the gates were reported.
func (x *rehearsal) close() error {
	x.Disconnect()
	x.stage.close()
	return x.Close()
}

// event returns the first event of a policy's gate.
func (x *rehearsal) event(policy string) (e spillway.Event, ok bool) {
	v, _ := x.events.Load(policy)
	e, ok = v.(spillway.Event)
	return e, ok
}

// answered records the response. It is an [http.ResponseWriter].
type answered struct {
	header http.Header
	status int
}

// Header implements [http.ResponseWriter].
func (a *answered) Header() http.Header { return a.header }

func (a *answered) WriteHeader(status int) {
	if a.status == 0 && status >= http.StatusOK {
		a.status = status
	}
}

func (a *answered) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return len(p), nil
}

// A failure is how an endpoint fails. The zero failure is a success.
type failure struct {
	rejected bool // it cannot be connected to
	broken   bool // the connection breaks before an answer
	status   int
	header   map[string]string
}

// A stage is a server in memory, which fails the first attempt and serves the others.
type stage struct {
	failure failure
	server  http.Server
	conns   *bufconn.Listener
	serving sync.WaitGroup

	attempts atomic.Int32
	sent     atomic.Pointer[http.Request] // the head of the first one
}

// connBuffer is how many bytes are on the way at once in each direction of a connection to a stage.
const connBuffer = 4 << 10

func newStage() *stage {
	s := &stage{conns: bufconn.Listen(connBuffer)}
	s.server.Handler = s
	s.server.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.server.Protocols = new(http.Protocols)
	s.server.Protocols.SetHTTP1(true)
	s.server.Protocols.SetUnencryptedHTTP2(true)
	s.serving.Go(func() { _ = s.server.Serve(s.conns) }) // which returns when it is closed
	return s
}

func (s *stage) close() {
	_ = s.server.Close() // closes the listener, too
	s.serving.Wait()
}

func (s *stage) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	if s.failure.rejected && s.attempts.Add(1) == 1 {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	return s.conns.DialContext(ctx)
}

func (s *stage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // as far as it comes
	s.sent.CompareAndSwap(nil, r)
	f := s.failure
	if !f.rejected && s.attempts.Add(1) > 1 {
		f = failure{}
	}
	if f.broken {
		panic(http.ErrAbortHandler) //nolint:forbidigo // the way to break a connection in net/http
	}
	for name, value := range f.header {
		w.Header().Set(name, value)
	}
	if f.status != 0 {
		w.WriteHeader(f.status)
	}
}
