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

// An arrival is what is known about a request when it arrives.
type arrival = serving.Arrival

// judge fills in a from the request and from the claims that are trusted. It returns all claims.
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

// keyOf returns the name of the route of r. Clients cannot invent patterns of a mux, because the
// server registers them.
func (h *Handler) keyOf(r *http.Request) string {
	switch {
	case h.config.Route != nil:
		return h.config.Route(r)
	case h.mux == nil, r.Pattern != "": // an outer mux has set the pattern
		return r.Pattern
	// For a CONNECT request that it would redirect, the mux returns the path, which is no pattern.
	case r.Method == http.MethodConnect, r.URL == nil:
		return ""
	}
	_, pattern := h.mux.Handler(r)
	return pattern
}

// find fills in the caller of the request, if a policy of the Server needs it.
func (h *Handler) find(r *http.Request, c *ratelimit.Caller) {
	if h.ingress.WantsCaller() {
		c.Application = first(r.Header, "User-Agent")
		c.Addr = addressOf(r.RemoteAddr)
	}
}

// Judge returns the Call that the Handler would derive from a request at the time now, and the
// claims of the request. It decides and counts nothing: it is for tools that explain decisions.
func (h *Handler) Judge(now time.Time, r *http.Request) (call spillway.Call, said ingress.Claims) {
	var a arrival
	said = h.judge(now, r, &a)
	return a.Call, said
}

func addressOf(remote string) netip.Addr {
	a, _ := netip.ParseAddrPort(remote) // an invalid address matches no exemption
	return a.Addr()
}

// identity returns the authenticated identity of the caller, or "".
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

// The claims of a request are read from its headers. If a request claims one thing several times,
// the claim that favors it least counts: the lowest class, the shortest time, the most attempts.
// Invalid claims are ignored. Only POST requests can have the headers of gRPC, whose calls are all
// POST requests: each lookup of a header costs more than the rest of the decision.

// These are the indexes in claimFields of the headers that are read.
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

// claimHeaders are the names of these headers.
var claimHeaders = [claimKinds]string{
	headerCriticality, headerLevel, headerProgress, headerBaggage, headerTrace,
	headerDeadline, headerAttempt, headerSDKRequest, headerGRPCTimeout, headerGRPCAttempts,
}

// claimFields has the values of these headers in one request. The headers of gRPC are set for POST
// requests only.
type claimFields [claimKinds][]string

// fieldsOf returns the fields of r. It leaves out the trace, which seldom counts, and the attempt
// unless attempts is set. It looks up each header by its constant name, because a loop over a table
// of names would cost more than the lookups.
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

// read sets the claims in c from the fields. It does not read the trace.
func (f *claimFields) read(c *ingress.Claims) {
	i := f.importance()
	said := i.Read()
	c.Criticality, c.Labelled, c.Level, c.Progress = said.Criticality, said.Labelled, said.Level, said.Progress
	c.Timeout = f.timeout()
	c.Attempt = f.attempt()
}

// readTrace sets the level of the trace in c, for a request without a valid level.
func readTrace(c *ingress.Claims, h http.Header) {
	if c.Level == 0 {
		c.TraceLevel = claims.TraceLevel(h[headerTrace])
	}
}

// importance returns the fields that say how much the request matters.
func (f *claimFields) importance() claims.Fields {
	return claims.Fields{Criticality: f[claimCriticality], Level: f[claimLevel], Progress: f[claimProgress], Baggage: f[claimBaggage]}
}

// attempt returns the attempt number that the request claims, from 0 for the first attempt.
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

// count returns the whole number in text, at most math.MaxInt32, or 0 if text is no number.
func count(text string) int {
	n, _ := hints.Units(text, 1)
	return int(min(n, math.MaxInt32))
}

// timeout returns how long the client will wait, by the claims of the request; 0 means no claim.
func (f *claimFields) timeout() (least time.Duration) {
	for _, v := range f[claimDeadline] {
		d, _ := hints.Units(v, time.Millisecond)
		least = shorter(least, d)
	}
	for _, v := range f[claimGRPCTimeout] { // at most 8 digits and a unit
		if last := len(v) - 1; last >= 1 && last <= 8 {
			d, _ := hints.Units(v[:last], unitsOfGRPC[v[last]])
			least = shorter(least, d)
		}
	}
	return least
}

// shorter returns the lesser of a and b, where 0 and less means none.
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
