package admin

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/collector"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/decisions"
	"github.com/seed90641741/spillway/cmd/spillway/internal/page"
)

// Config is what a [Server] is made of.
type Config struct {
	Collector *collector.Collector
	// Decisions has the rejections. Nil means that there are none to show.
	Decisions *decisions.Log
	Proxy     Proxy
	Access    Access
	// Version is that of the program, to be shown.
	Version string
	// Logger is told of changes. Nil means nobody.
	Logger *slog.Logger
	// Wall returns the time of day at a moment. Nil means that the moment has it.
	Wall func(time.Time) time.Time
}

// Access says who may look, and who may make changes.
type Access struct {
	// Hosts are names by which browsers may ask, besides localhost and addresses.
	Hosts []string
	// TokenFile has the bearer token that changes want, and nothing else but white
	// space around it. It is read for each change. Empty means that none are possible.
	TokenFile string
	// ReadTokenFile has the bearer token that reading wants; the one in TokenFile will
	// do, too. Empty means that none is wanted over a loopback address or a Unix socket;
	// over any other, what names customers and endpoints is shown to nobody without the
	// token in TokenFile. Health and readiness never want one.
	ReadTokenFile string
}

// A Server serves the operators. Make one with [New].
type Server struct {
	sampler  *sampler
	registry *prometheus.Registry // of what the sampler has
	proxy    Proxy
	logger   *slog.Logger
	access   atomic.Pointer[Access]
	server   *http.Server
	change   sync.Mutex // one at a time
	failures failures   // of tokens

	stop    context.CancelFunc
	stopped chan struct{}
}

// interval is that of ticks.
const interval = time.Second

//go:embed web
var web embed.FS

// New returns a Server that looks at the proxy from now on. It must be closed.
func New(c Config) *Server {
	s := newServer(c, time.Now())
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

// newServer returns a Server whose time does not go on by itself.
func newServer(c Config, now time.Time) *Server {
	s := &Server{
		sampler:  newSampler(&c, now),
		registry: prometheus.NewRegistry(),
		proxy:    c.Proxy, logger: c.Logger, stopped: make(chan struct{}),
	}
	if c.Wall != nil {
		s.sampler.wall = c.Wall
	}
	s.registry.MustRegister(exporter{s.sampler})
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	s.Allow(c.Access)
	return s
}

// Allow changes who may look, and who may make changes.
func (s *Server) Allow(a Access) { s.access.Store(&a) }

// Serve serves until the server is closed; then it returns nil.
func (s *Server) Serve(l net.Listener) error {
	if err := s.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Close ends all at once, and leaves [Server.Metrics] as they are in the end. It must be
// called once.
func (s *Server) Close() error {
	s.stop()
	<-s.stopped
	return s.server.Close()
}

// run ticks until ctx ends, and then once more: what is read after Close is all there was.
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
			s.sampler.pulse.beaten(now.Sub(last))
			last = now
		case now := <-ticks.C:
			s.sampler.tick(now)
		}
	}
}

// Handler returns all that the server answers to.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	files, _ := fs.Sub(web, "web") // it is there
	mux.HandleFunc("GET /", s.read(http.FileServerFS(files).ServeHTTP))
	mux.HandleFunc("GET /uplot.js", asset("text/javascript; charset=utf-8", page.UPlot))
	mux.HandleFunc("GET /page.css", asset("text/css; charset=utf-8", page.UPlotStyle+page.Palette))
	mux.HandleFunc("GET /api/v1/state", s.private(s.serveState))
	mux.HandleFunc("GET /api/v1/stream", s.private(s.serveStream))
	mux.HandleFunc("POST /api/v1/mode", s.changed(s.setMode))
	mux.HandleFunc("POST /api/v1/reload", s.changed(s.reload))
	mux.HandleFunc("GET /metrics", s.read(s.metrics().ServeHTTP))
	mux.HandleFunc("GET /debug/limits", s.private(s.text(writeLimits)))
	mux.HandleFunc("GET /debug/accounts", s.private(s.text(writeAccounts)))
	mux.HandleFunc("GET /debug/queues", s.private(s.text(writeQueues)))
	mux.HandleFunc("GET /debug/decisions", s.private(s.sampler.decided.ServeSamples))
	mux.HandleFunc("GET /debug/top", s.private(s.sampler.decided.ServeTop))
	mux.HandleFunc("GET /debug/config", s.private(s.serveConfig))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { plainText(w, http.StatusOK, "ok\n") })
	mux.HandleFunc("GET /readyz", s.serveReady)
	return s.guard(mux)
}

func asset(kind, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write([]byte(text)) // who has left does not read it
	}
}

func (s *Server) serveState(w http.ResponseWriter, _ *http.Request) {
	text, err := json.MarshalIndent(s.sampler.state.Load(), "", " ")
	if err != nil { // a number is none
		plainText(w, http.StatusInternalServerError, err.Error()+"\n")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(text, '\n')) // who has left does not read it
}

// serveReady asks anew: a balancer is to know at once.
func (s *Server) serveReady(w http.ResponseWriter, _ *http.Request) {
	if err := s.proxy.Ready(); err != nil {
		plainText(w, http.StatusServiceUnavailable, err.Error()+"\n")
		return
	}
	plainText(w, http.StatusOK, "ready\n")
}

func plainText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // who has left does not read it
}
