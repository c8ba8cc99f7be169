package process

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/spillhttp"
)

// A Backend is the server that a drill overloads. It runs in a Separate process, on one
// CPU: a plain net/http handler that does the same amount of work for each call, with
// Spillway in front of it if configured.
type Backend struct {
	Port    int           `json:"port"`     // on 127.0.0.1; 0 is any free one
	Kind    string        `json:"kind"`     // what a call does
	Protect bool          `json:"protect"`  // with Spillway
	Degrade bool          `json:"degrade"`  // answers with a third of the work while the server is degraded
	ShedOff bool          `json:"shed_off"` // with Spillway, which does not shed
	Reject  bool          `json:"reject"`   // with Spillway, which rejects each call: what a rejection costs
	Service time.Duration `json:"service"`  // processor time of a call, or how long a blocking one holds its slot
	Quota   float64       `json:"quota"`    // of each of two customers, in calls per second of the cheap one; 0 is none
	Learn   bool          `json:"learn"`    // the quota charges learned processor time, not calls
	Rounds  int           `json:"rounds"`   // of work for a call, as an earlier backend calibrated it; 0 calibrates
}

// Answer is the format of the answer of a Backend. It has the processor time of the work, relative to the calibration.
const Answer = "done, work took %f of the calibrated time\n"

// hello is the line with which the backend reports to its parent that it is ready.
type hello struct {
	Addr   string `json:"addr"`
	Page   string `json:"page"` // URL of its page for operators; empty: it has none
	Rounds int    `json:"rounds"`
	Error  string `json:"error"`
}

// ServeBackend serves the Backend with settings, which [StartBackend] has given to the process,
// until in ends, which it does when the parent is gone, and then exits the process. It first
// writes a hello to out.
func ServeBackend(settings string, in io.Reader, out io.Writer) error {
	var b Backend
	if err := json.Unmarshal([]byte(settings), &b); err != nil {
		return err
	}
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(GCPercent)
	signal.Ignore(os.Interrupt, syscall.SIGTERM) // may go to the whole group; the parent decides
	ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", b.Port))
	if err != nil {
		return json.NewEncoder(out).Encode(hello{Error: err.Error()})
	}
	if b.Rounds == 0 {
		b.Rounds = calibrate(b.Service, timeBurn)
	}
	down := new(sync.RWMutex)
	go func() {
		outages(in, down)
		os.Exit(0)
	}()
	var page *operatorsPage
	if b.Protect && b.Quota == 0 {
		if page, err = servePage(); err != nil {
			return json.NewEncoder(out).Encode(hello{Error: err.Error()})
		}
	}
	if err := json.NewEncoder(out).Encode(hello{Addr: ln.Addr().String(), Page: page.url(), Rounds: b.Rounds}); err != nil {
		return err
	}
	return b.serve(ln, b.handler(down), page)
}

func (b Backend) serve(ln net.Listener, h http.Handler, page *operatorsPage) error {
	switch {
	case b.Quota > 0:
		return b.serveCustomers(ln)
	case page != nil: // with defaults but for one thing: it is an internal server, so that it believes the labels
		c := ingress.Config{Observer: page, Trust: ingress.Trust{Boundary: ingress.Internal, DefaultMax: spillway.CriticalPlus}}
		if b.ShedOff {
			c.ShedMode = spillway.ModeOff
		}
		if b.Reject {
			c.RateLimit.Rate = rejectAll
		}
		gates, err := ingress.New(c)
		if err != nil {
			return err
		}
		page.AddServer(ServerName, gates)
		return protect(ln, h, spillhttp.HandlerConfig{Ingress: gates})
	}
	return newServer(h).Serve(ln)
}

// rejectAll is a rate per second of one request a day.
const rejectAll = 1.0 / (24 * 60 * 60)

func protect(ln net.Listener, next http.Handler, c spillhttp.HandlerConfig) error {
	h, err := spillhttp.NewHandler(next, c)
	if err != nil {
		return err
	}
	return h.Serve(newServer(h), ln)
}

// headTimeout is far above what a caller on this machine needs, however busy.
const headTimeout = time.Minute

// newServer returns a server for every kind of wire.
func newServer(h http.Handler) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{Handler: h, Protocols: protocols, ReadHeaderTimeout: headTimeout}
}

// outages simulates outages of a dependency. It reads their durations from the parent, waits
// for the calls in progress, and locks down for the duration. It returns when the parent is
// gone.
func outages(in io.Reader, down *sync.RWMutex) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if d, err := time.ParseDuration(lines.Text()); err == nil {
			down.Lock()
			time.AfterFunc(d, down.Unlock)
		}
	}
}

// handler does the work of a call, but not while down is locked. An outage loses no calls:
// they continue after it, whether or not a caller still waits for them. While thousands of
// calls wait for the only CPU, the goroutine that watches the parent waits, too, so each call
// checks the parent as well.
func (b Backend) handler(down *sync.RWMutex) http.Handler {
	parent := os.Getppid()
	work := b.work()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if os.Getppid() != parent {
			os.Exit(0)
		}
		down.RLock()
		defer down.RUnlock()
		_, _ = io.Copy(io.Discard, r.Body) // a caller that leaves is noticed below
		slowdown, done := work(r.Context())
		if !done {
			return // the client is gone
		}
		_, _ = w.Write(fmt.Appendf(nil, Answer, slowdown)) // a client that has left does not read it
	})
}
