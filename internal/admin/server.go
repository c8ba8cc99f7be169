package admin

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/seed90641741/spillway/internal/admin/access"
	"github.com/seed90641741/spillway/internal/admin/collector"
	"github.com/seed90641741/spillway/internal/admin/decisions"
	"github.com/seed90641741/spillway/internal/admin/page"
	"github.com/seed90641741/spillway/internal/admin/textpage"
)

// Config configures a [Server].
type Config struct {
	// Collector has the events of the policies. Nil means that there are none.
	Collector *collector.Collector
	// Decisions is the log of rejections. Nil means that none are shown.
	Decisions *decisions.Log
	Source    Source
	// Program has the configuration of Source. Nil means that there is none to show or to change.
	Program Program
	// Library says that Source is a program that uses the library, and that Collector and Decisions are for one.
	Library bool
	// Metrics returns a handler of the metrics of the last State, with the names of customers or without. Nil means
	// that there are no metrics.
	Metrics func(state func() *State, names bool) http.Handler
	Access  access.Rules
	// Name is the name of this process. Empty means the name of the host.
	Name string
	// Version is the version of the program, for display.
	Version string
	// Logger receives changes. Nil discards them.
	Logger *slog.Logger
	// Wall returns the wall clock time of a time. Nil uses the time itself.
	Wall func(time.Time) time.Time
}

// A Server serves the operators. Make one with [New].
type Server struct {
	sampler *sampler
	logger  *slog.Logger
	access  *access.Gate
	server  *http.Server
	change  sync.Mutex // one at a time

	stop    context.CancelFunc
	stopped chan struct{}
}

// interval is the time between ticks.
const interval = time.Second

//go:embed web
var web embed.FS

// New returns a Server and starts to sample the proxy. It must be closed.
func New(c Config) *Server {
	s := NewAt(c, time.Now())
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	s.server = &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(s.logger.Handler(), slog.LevelDebug),
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	go s.run(ctx)
	return s
}

// NewAt returns a Server that takes samples in [Server.Tick] only, and must not be closed.
func NewAt(c Config, now time.Time) *Server {
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return &Server{sampler: newSampler(c, now), logger: c.Logger, stopped: make(chan struct{}), access: access.New(c.Access, c.Logger)}
}

// State returns the last State. The caller must not change it.
func (s *Server) State() *State { return s.sampler.state.Load() }

// Tick takes a sample, for servers of [NewAt].
func (s *Server) Tick(now time.Time) { s.sampler.tick(now) }

// Allow replaces the access rules.
func (s *Server) Allow(c access.Rules) { s.access.Set(c) }

// Serve serves until the server is closed; then it returns nil.
func (s *Server) Serve(l net.Listener) error {
	if err := s.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Close ends all requests at once. [Server.State] keeps the last values. Close must be
// called once.
func (s *Server) Close() error {
	s.stop()
	<-s.stopped
	return s.server.Close()
}

// run ticks until ctx ends, and then once more, so that metrics are complete after Close.
func (s *Server) run(ctx context.Context) {
	defer close(s.stopped)
	ticks, beats := time.NewTicker(interval), time.NewTicker(beat)
	defer ticks.Stop()
	defer beats.Stop()
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			s.sampler.tick(time.Now())
			return
		case <-beats.C:
			now := time.Now()
			s.sampler.stalled += stall(now.Sub(last))
			last = now
		case now := <-ticks.C:
			s.sampler.tick(now)
		}
	}
}

// beat is the interval at which the clock is read to find stalls. At 20 times per second the
// cost for an idle process is negligible.
const beat = 50 * time.Millisecond

// stall returns how long this process was runnable but did not run, of the time between two
// beats. A delay up to a quarter of a beat is not a stall: timers on a busy host are not more exact.
func stall(passed time.Duration) time.Duration {
	if late := passed - beat; late > beat/4 {
		return late
	}
	return 0
}

// Handler returns the handler of all paths.
func (s *Server) Handler() http.Handler {
	mux, private, read := http.NewServeMux(), s.access.Private, s.access.Read
	if s.sampler.with.Library { // it has no metrics, and so nothing that another host may ask for
		read = private
	}
	files, _ := fs.Sub(web, "web") // it is there
	mux.HandleFunc("GET /", read(http.FileServerFS(files).ServeHTTP))
	mux.HandleFunc("GET /uplot.js", asset("text/javascript; charset=utf-8", page.UPlot)) // public, as anybody has it
	mux.HandleFunc("GET /page.css", asset("text/css; charset=utf-8", page.UPlotStyle+page.Palette))
	mux.HandleFunc("GET /api/v1/state", private(func(w http.ResponseWriter, _ *http.Request) { textpage.ServeJSON(w, s.State()) }))
	mux.HandleFunc("GET /api/v1/stream", private(s.serveStream))
	mux.HandleFunc("GET /debug/limits", private(s.text(writeLimits)))
	mux.HandleFunc("GET /debug/accounts", private(s.text(func(w io.Writer, st *State) { st.Totals.Accounts.Write(w) })))
	mux.HandleFunc("GET /debug/queues", private(s.text(writeQueues)))
	mux.HandleFunc("GET /debug/quotas", private(s.text(writeQuotas)))
	mux.HandleFunc("GET /debug/decisions", private(s.sampler.with.Decisions.ServeSamples))
	mux.HandleFunc("GET /debug/top", private(s.sampler.with.Decisions.ServeTop))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { textpage.Serve(w, http.StatusOK, "ok\n") })
	mux.HandleFunc("GET /readyz", s.serveReady)
	s.handleProgram(mux)
	return s.access.Guard(mux)
}

// handleProgram adds the handlers that not all programs have.
func (s *Server) handleProgram(mux *http.ServeMux) {
	if p := s.sampler.with.Program; p != nil {
		mux.HandleFunc("POST /api/v1/mode", s.changed(func(body string) (string, error) { return setMode(p, s.State(), body) }))
		mux.HandleFunc("POST /api/v1/reload", s.changed(func(string) (string, error) { return reload(p) }))
		mux.HandleFunc("GET /debug/config", s.access.Private(s.serveConfig))
	}
	if metrics := s.sampler.with.Metrics; metrics != nil {
		public, named := metrics(s.State, false), metrics(s.State, true)
		mux.HandleFunc("GET /metrics", s.access.Read(func(w http.ResponseWriter, r *http.Request) {
			if s.access.SeesNames(r) {
				named.ServeHTTP(w, r)
			} else {
				public.ServeHTTP(w, r)
			}
		}))
	}
}

func asset(kind, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write([]byte(text)) // who has left does not read it
	}
}

// serveReady does not use the last sample: a load balancer must see a change at once.
func (s *Server) serveReady(w http.ResponseWriter, _ *http.Request) {
	if err := s.sampler.with.Source.Ready(); err != nil {
		textpage.Serve(w, http.StatusServiceUnavailable, err.Error()+"\n")
		return
	}
	textpage.Serve(w, http.StatusOK, "ready\n")
}
