package main

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"
)

// gcPercent lets both processes collect garbage less often than usual: neither has much
// memory.
const gcPercent = 400

// backendCommand has the flags of the hidden command that is the server.
type backendCommand struct {
	Kind       string        `default:"cpu"`
	Wire       string        `default:"http1"`
	Front      string        `default:"none"`
	Rounds     int           `help:"Work of one call, as an earlier backend calibrated it; 0 calibrates."`
	Procs      int           `default:"1"`
	SlowAccept time.Duration `default:"0s"`
	Reject     bool          `help:"Reject every call, where the front is none, spillway or one of its variants."`
}

// command is the first argument by which this program is asked to be a backend.
const command = "backend"

// args are the arguments by which a child becomes this backend.
func (b *backendCommand) args() []string {
	return []string{
		command, "--kind=" + b.Kind, "--wire=" + b.Wire, "--front=" + b.Front, "--rounds=" + strconv.Itoa(b.Rounds),
		"--procs=" + strconv.Itoa(b.Procs), "--slow-accept=" + b.SlowAccept.String(), fmt.Sprintf("--reject=%t", b.Reject),
	}
}

// hello is the one line by which the backend tells its parent that it serves.
type hello struct {
	Addr        string `json:"addr"`
	Rounds      int    `json:"rounds"`
	Certificate []byte `json:"certificate"` // in DER; empty without TLS
}

// serve serves until in ends, which it does when the parent has ended, and then exits the
// process. It first writes a hello to out.
func (b *backendCommand) serve(in io.Reader, out io.Writer) error {
	f, ok := frontNamed(b.Front)
	w, known := wireNamed(b.Wire)
	if !ok || !known {
		return usage{fmt.Errorf("--front %q or --wire %q does not exist", b.Front, b.Wire)}
	}
	runtime.GOMAXPROCS(b.Procs)
	debug.SetGCPercent(gcPercent)
	signal.Ignore(os.Interrupt, syscall.SIGTERM) // may go to the whole group; the parent decides
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if b.Rounds == 0 {
		b.Rounds = calibrate(service)
	}
	h := hello{Addr: ln.Addr().String(), Rounds: b.Rounds}
	s := newServer(w)
	if w.tls {
		cert, err := newCertificate()
		if err != nil {
			return err
		}
		s.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13}
		h.Certificate = cert.Certificate[0]
	}
	go func() {
		_, _ = io.Copy(io.Discard, in) // its end is what matters
		os.Exit(0)
	}()
	if err := json.NewEncoder(out).Encode(h); err != nil {
		return err
	}
	if b.SlowAccept > 0 {
		ln = &slowListener{ln, b.SlowAccept}
	}
	if w.grpc {
		return f.serveGRPC(ln, worker(b.Kind, b.Rounds), b.Reject)
	}
	return f.serve(s, ln, b.handler(), b.Reject)
}

func newServer(w wire) *http.Server {
	return &http.Server{
		Protocols: w.protocols(), ReadHeaderTimeout: time.Minute, // far above what a client here needs
		ErrorLog: log.New(io.Discard, "", 0), // clients leave in the middle of handshakes
	}
}

// handler does the work of a call.
func (b *backendCommand) handler() http.Handler {
	work := worker(b.Kind, b.Rounds)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // who has left is noticed below
		if work(r.Context()) {
			_, _ = io.WriteString(w, "done\n") // a client that has left is not answered
		}
	})
}
