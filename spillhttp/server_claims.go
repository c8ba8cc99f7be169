package spillhttp

import (
	"math"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/claims"
	"github.com/seed90641741/spillway/internal/hints"
	"github.com/seed90641741/spillway/internal/serving"
	"github.com/seed90641741/spillway/ratelimit"
)

// An arrival is the data about a request when it arrives.
type arrival = serving.Arrival

// judge fills in a from the request, with the claims that are trusted, and returns all its claims.
func (h *Handler) judge(now time.Time, r *http.Request, a *arrival) (said ingress.Claims) {
	h.recognize(r, a)
	trust := h.ingress.Trust()
	said.Identity = h.identity(r)
	f := fieldsOf(r, a.CountsAttempts(trust))
	f.read(&said)
	if trust.Boundary == ingress.Internal {
		readTrace(&said, r.Header)
	}
	a.Said = f.importance()
	a.Believe(now, trust, &said)
	if !a.Call.Level.Valid() && h.looks.Load() > 0 {
		a.Call.Level = drawnEarly(r.Context())
	}
	return said
}

// recognize fills in what the server itself knows about the request.
func (h *Handler) recognize(r *http.Request, a *arrival) {
	if h.config.Classify != nil {
		a.Call = h.config.Classify(r)
	}
	if a.Call.Key == "" {
		a.Call.Key = h.keyOf(r)
	}
}

// keyOf names the route of r. The patterns of a mux are registered, so clients cannot make more of them.
func (h *Handler) keyOf(r *http.Request) string {
	switch {
	case h.config.Route != nil:
		return h.config.Route(r)
	case h.mux == nil, r.Pattern != "": // of an outer mux
		return r.Pattern
	case r.Method == http.MethodConnect, r.URL == nil: // for a redirect of CONNECT, the mux returns the path
		return ""
	}
	_, pattern := h.mux.Handler(r)
	return pattern
}

// find determines the caller, if the Server needs it.
func (h *Handler) find(r *http.Request, c *ratelimit.Caller) {
	if h.ingress.WantsCaller() {
		c.Application = first(r.Header, "User-Agent")
		c.Addr = addressOf(r.RemoteAddr)
	}
}

// Judge returns the Call that the Handler would derive from a request that came now, and the
// claims of the request. Nothing is decided or counted: it is for tools that explain
// decisions.
func (h *Handler) Judge(now time.Time, r *http.Request) (call spillway.Call, said ingress.Claims) {
	var a arrival
	said = h.judge(now, r, &a)
	return a.Call, said
}

func addressOf(remote string) netip.Addr {
	a, _ := netip.ParseAddrPort(remote) // what is no address matches no exemption
	return a.Addr()
}

// identity returns who the caller has proven to be.
func (h *Handler) identity(r *http.Request) string {
	switch {
	case h.config.Identity != nil:
		return h.config.Identity(r)
	case r.TLS == nil || len(r.TLS.VerifiedChains) == 0:
		return ""
	default:
		return claims.Identity(r.TLS.VerifiedChains[0][0])
	}
}

// What a request says of itself is read from its header. Where it says several
// things, the one counts that gains it least: the lowest class, the shortest
// time, the most attempts. What is not valid says nothing. The headers of gRPC,
// whose calls are all POST requests, are looked for in those only: each look costs
// more than what else is decided.

// The fields that are read, by their place in claimFields.
const (
	claimCriticality = iota
	claimLevel
	claimProgress
	claimBaggage
	claimTrace
	claimDeadline
	claimAttempt
	claimSDKRequest
	claimGRPCTimeout
	claimGRPCAttempts
	claimKinds
)

// claimHeaders are their names.
var claimHeaders = [claimKinds]string{
	headerCriticality, headerLevel, headerProgress, headerBaggage, headerTrace,
	headerDeadline, headerAttempt, headerSDKRequest, headerGRPCTimeout, headerGRPCAttempts,
}

// claimFields are the values of these fields in one request. The fields of gRPC are only set for
// POST requests.
type claimFields [claimKinds][]string

// fieldsOf returns the fields of r, without the trace, which seldom counts, and without the fields of the attempt if it does not count. It
// looks up each by its name: a table of them costs more than the lookups.
func fieldsOf(r *http.Request, attempts bool) (f claimFields) {
	h := r.Header
	f[claimCriticality], f[claimBaggage], f[claimDeadline] = h[headerCriticality], h[headerBaggage], h[headerDeadline]
	f[claimLevel], f[claimProgress] = h[headerLevel], h[headerProgress]
	if r.Method == http.MethodPost {
		f[claimGRPCTimeout] = h[headerGRPCTimeout]
	}
	if !attempts {
		return f
	}
	f[claimAttempt], f[claimSDKRequest] = h[headerAttempt], h[headerSDKRequest]
	if r.Method == http.MethodPost {
		f[claimGRPCAttempts] = h[headerGRPCAttempts]
	}
	return f
}

// read takes into c what the request says of itself, but for the trace.
func (f *claimFields) read(c *ingress.Claims) {
	i := f.importance()
	said := i.Read()
	c.Criticality, c.Labelled, c.Level, c.Progress = said.Criticality, said.Labelled, said.Level, said.Progress
	c.Timeout = f.timeout()
	c.Attempt = f.attempt()
}

// readTrace takes into c the level of the trace, for a request that says no valid one.
func readTrace(c *ingress.Claims, h http.Header) {
	if c.Level == 0 {
		c.TraceLevel = claims.TraceLevel(h[headerTrace])
	}
}

// importance returns the fields that say how much the request matters.
func (f *claimFields) importance() claims.Fields {
	return claims.Fields{Criticality: f[claimCriticality], Level: f[claimLevel], Progress: f[claimProgress], Baggage: f[claimBaggage]}
}

// attempt returns which attempt the request says that it is, from 0.
func (f *claimFields) attempt() (n int) {
	for _, v := range f[claimAttempt] {
		n = max(n, count(v)-1)
	}
	for _, v := range f[claimSDKRequest] {
		for part := range strings.SplitSeq(v, ";") {
			if key, value, _ := strings.Cut(part, "="); strings.TrimSpace(key) == "attempt" {
				n = max(n, count(value)-1)
			}
		}
	}
	for _, v := range f[claimGRPCAttempts] {
		n = max(n, count(v))
	}
	return n
}

// count returns the whole number in text, however long, or 0.
func count(text string) int {
	n, _ := hints.Units(text, 1)
	return int(min(n, math.MaxInt32))
}

// timeout returns how long the request says that the caller will wait, or 0.
func (f *claimFields) timeout() (least time.Duration) {
	for _, v := range f[claimDeadline] {
		d, _ := hints.Units(v, time.Millisecond)
		least = shorter(least, d)
	}
	for _, v := range f[claimGRPCTimeout] { // at most 8 digits, each with its unit
		if last := len(v) - 1; last >= 1 && last <= 8 {
			d, _ := hints.Units(v[:last], unitsOfGRPC[v[last]])
			least = shorter(least, d)
		}
	}
	return least
}

// shorter returns the lesser of the two that is above zero.
func shorter(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}

var unitsOfGRPC = [256]time.Duration{
	'H': time.Hour, 'M': time.Minute, 'S': time.Second,
	'm': time.Millisecond, 'u': time.Microsecond, 'n': time.Nanosecond,
}
