package httpproxy

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/routes"
)

// newForward returns the reverse proxy to a cluster.
func (p *Proxy) newForward(g *gate) *httputil.ReverseProxy {
	failures := &occasional{logger: p.logger}
	return &httputil.ReverseProxy{
		Rewrite:        g.rewrite,
		Transport:      g.cluster,
		ModifyResponse: g.received,
		BufferPool:     buffers,
		ErrorLog:       slog.NewLogLogger(p.logger.Handler(), slog.LevelDebug),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if a := answer(w, r, err, g.comeBack(err)); (a == notReached || a == tooLate) && !errors.Is(err, spillway.ErrRejected) {
				failures.warn("the upstream gave no answer", "cluster", g.key.cluster, "error", err)
			}
		},
	}
}

// rewrite makes the outgoing request from the incoming one.
func (g *gate) rewrite(r *httputil.ProxyRequest) {
	r.Out.URL.RawQuery = r.In.URL.RawQuery // as it came: nothing here goes by it
	r.Out.URL.Scheme, r.Out.URL.Host = g.cluster.Current().Address()
	h := r.Out.Header
	s := g.settings.Load()
	internal := s.internal
	// The gate has evaluated these headers. The Transport sets them again on the outgoing request.
	h.Del("X-Request-Criticality")
	h.Del("X-Envoy-Expected-Rq-Timeout-Ms")
	h.Del("X-Envoy-Attempt-Count")
	if a := accountingOf(r.In.Context()); a != nil {
		a.visit.send(h)
	}
	if internal {
		h["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
	} else {
		sanitize(h, s.table)
		dropMember(h, "criticality")
	}
	r.SetXForwarded()
	if internal { // the hop before has said how the client came
		keep(h, r.In.Header, "X-Forwarded-Host")
		keep(h, r.In.Header, "X-Forwarded-Proto")
	}
	if h["Grpc-Timeout"] != nil {
		if deadline, ok := r.In.Context().Deadline(); ok {
			left := max(time.Until(deadline).Milliseconds(), 1)
			h.Set("Grpc-Timeout", strconv.FormatInt(min(left, 99_999_999), 10)+"m")
		}
	}
}

// sanitize removes headers that services behind the edge trust, and that a client could only
// forge. A header that names the customer of a route stays.
func sanitize(h http.Header, table *routes.Table) {
	for name := range h {
		if internalHeader(name) && !table.Trusted(name) {
			delete(h, name)
		}
	}
}

// internalHeaders are names and prefixes of headers that are set inside. Some servers read _
// as -.
var internalHeaders = []string{"X-Envoy-", "X-Request-", "X-Forwarded-", "X-Real-Ip", "Forwarded", "Grpc-Previous-Rpc-Attempts", "Amz-Sdk-Request"}

func internalHeader(name string) bool {
	if name == "" || name[0] != 'X' && name[0] != 'F' && name[0] != 'G' && name[0] != 'A' {
		return false
	}
	if strings.Contains(name, "_") {
		name = http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
	}
	for _, begin := range internalHeaders {
		if strings.HasPrefix(name, begin) && (begin[len(begin)-1] == '-' || name == begin) {
			return true
		}
	}
	return false
}

// switches returns an error if an upstream switches protocols without a request to do so, or
// to another protocol than the requested one. The connection is then closed.
func switches(resp *http.Response) error {
	asked := resp.Request.Header.Get("Upgrade")
	if resp.StatusCode == http.StatusSwitchingProtocols && (asked == "" || !strings.EqualFold(resp.Header.Get("Upgrade"), asked)) {
		return errors.New("the upstream has changed the protocol unasked")
	}
	return nil
}

// keep copies a header to h unchanged, if the request has it.
func keep(h, came http.Header, name string) {
	if values := came[name]; len(values) > 0 {
		h[name] = values
	}
}

// dropMember removes a member from the baggage: W3C Baggage, section 3.3.
func dropMember(h http.Header, name string) {
	values := h["Baggage"]
	if len(values) == 0 {
		return
	}
	var kept []string
	for _, v := range values {
		for member := range strings.SplitSeq(v, ",") {
			pair, _, _ := strings.Cut(member, ";")
			if key, _, _ := strings.Cut(pair, "="); strings.TrimSpace(key) != name {
				kept = append(kept, member)
			}
		}
	}
	if h.Del("Baggage"); len(kept) > 0 {
		h.Set("Baggage", strings.TrimSpace(strings.Join(kept, ",")))
	}
}

// buffers are the buffers for copying bodies.
var buffers = &bufferPool{sync.Pool{New: func() any { return new([bufferSize]byte) }}}

const bufferSize = 32 << 10

type bufferPool struct{ pool sync.Pool }

// Get implements [httputil.BufferPool].
func (b *bufferPool) Get() []byte { return b.pool.Get().(*[bufferSize]byte)[:] }

// Put implements [httputil.BufferPool].
func (b *bufferPool) Put(p []byte) { b.pool.Put((*[bufferSize]byte)(p)) }

// occasional logs at most once in a second, and counts what it leaves out.
type occasional struct {
	logger *slog.Logger
	last   atomic.Int64 // in nanoseconds since 1970
	missed atomic.Int64
}

func (o *occasional) warn(text string, args ...any) {
	now, last := time.Now().UnixNano(), o.last.Load()
	if now-last >= 0 && now-last < int64(time.Second) || !o.last.CompareAndSwap(last, now) {
		o.missed.Add(1)
		return
	}
	o.logger.Warn(text, append(args, "more", o.missed.Swap(0))...)
}
