package decisions

import (
	"errors"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin/accounts"
	"github.com/seed90641741/spillway/internal/admin/finite"
	"github.com/seed90641741/spillway/internal/admin/textpage"
	"github.com/seed90641741/spillway/internal/claims"
)

// A Decision is one rejection of a request. In the mode observe the request was let through.
type Decision struct {
	Time        time.Time `json:"time"`
	Reason      string    `json:"reason"`
	Policy      string    `json:"policy"`
	Mode        string    `json:"mode"`
	Criticality string    `json:"class"`
	Level       int       `json:"level,omitempty"`    // of the task within the class, 1 to 128
	Progress    int       `json:"progress,omitempty"` // calls of the task that were served before
	Listener    string    `json:"listener,omitempty"`
	Cluster     string    `json:"cluster,omitempty"`
	Route       string    `json:"route,omitempty"` // the pattern in the configuration
	Path        string    `json:"path,omitempty"`  // the first two segments
	Customer    string    `json:"customer,omitempty"`
	Caller      string    `json:"caller,omitempty"` // the name in the certificate, or the address
	RequestID   string    `json:"request_id,omitempty"`
	TraceID     string    `json:"trace_id,omitempty"`
	Attempt     int       `json:"attempt"`            // from 1
	Measured    *float64  `json:"measured,omitempty"` // by the policy; nil where it measures nothing, as a rate limit
	Limit       float64   `json:"limit,omitempty"`    // what it allows
	Unit        string    `json:"unit,omitempty"`     // of both
	// Setting names the limit where a policy has several: unlisted_total or capacity of a quota. It is
	// empty for the own limit of the customer.
	Setting string `json:"setting,omitempty"`
	Text    string `json:"text,omitempty"` // of the error
	Mongo   bool   `json:"-"`              // the listener is one of MongoDB
	Library bool   `json:"-"`              // a server or a client of the library rejected it
}

// MaxValue is the longest value of a field in bytes.
const MaxValue = 128

// A Source describes the request that is in progress. It is the value of [SourceKey] in the
// context of the request.
type Source interface {
	// Describe sets the fields of d that are known from the request.
	Describe(d *Decision)
	// Caller returns the name in the certificate of the client, or its address.
	Caller() string
	// Place returns the name of the route and the customer of the request, empty where they are not known. The
	// calls of policies that are asked after the gate name the cluster only.
	Place() (route, customer string)
}

// SourceKey is the key of the [Source] in a context.
type SourceKey struct{}

// of returns the decision that an event reports. The source may be nil.
func (l *Log) of(e *spillway.Event, s Source, caller string) Decision {
	d := Decision{
		Time: e.Time, Reason: accounts.Reason(e.Reason).String(), Policy: e.Policy, Mode: e.Mode.String(),
		Criticality: e.Call.Criticality.String(), Level: int(e.Call.Level), Progress: int(e.Call.Progress),
		Customer: Clean(e.Call.Customer), Attempt: int(e.Call.Attempt) + 1, Library: l.library != nil, Caller: Clean(caller),
	}
	switch {
	case d.Library:
		d.Route = Clean(e.Call.Key)
	case e.Call.Key != "":
		d.Cluster, d.Route = Split(e.Call.Key)
	}
	d.Measure(e.Level, e.Limit, e.Err)
	if e.Err != nil {
		d.Text = textpage.Clean(e.Err.Error(), maxText)
	}
	if s != nil {
		s.Describe(&d)
	}
	return d
}

// Measure sets what the policy measured and what it allows; the error has the unit, and the limit of several.
func (d *Decision) Measure(level, limit float64, err error) {
	d.Limit = finite.Number(limit)
	r, ok := errors.AsType[*spillway.RejectedError](err)
	if !ok {
		return
	}
	d.Unit, d.Setting = r.Unit, r.Setting
	if r.Measured() {
		d.Measured = new(finite.Number(level))
	}
	if r.Reason == spillway.ReasonThrottle {
		d.Limit = 0 // the level is a share
	}
}

// MeasuredByProxy sets what the proxy itself measured and what it allows, nothing without a unit.
func (d *Decision) MeasuredByProxy(level, limit float64, unit string) {
	if unit != "" {
		d.Measured, d.Limit, d.Unit = new(level), limit, unit
	}
}

// ByProxy is the policy of rejections that no policy made.
const ByProxy = "proxy"

// Split returns the cluster and the pattern of the route of a name.
func Split(name string) (cluster, route string) {
	cluster, route, _ = strings.Cut(name, accounts.KeySeparator)
	if route == "" {
		route = "/"
	}
	return cluster, route
}

// Clean returns a copy of text that a client may have chosen: at most MaxValue bytes of valid
// UTF-8, with each control character replaced.
func Clean(text string) string { return textpage.Clean(text, MaxValue) }

// NameOf returns the name of a customer for people; none is for requests without one, such as
// "(no customer)". A name that begins like none is in quotes, so a customer cannot pass for it.
func NameOf(customer, none string) string {
	switch name := Clean(customer); {
	case name == "":
		return none
	case strings.ContainsAny(name[:1], `("`):
		return strconv.Quote(name)
	default:
		return name
	}
}

// maxText is the most bytes of an error: what the policy says, with its advice.
const maxText = 4 * MaxValue

// Network returns the network of a client: its address, of IPv6 the first 64 bits, as a host has
// all addresses that begin with them. It is empty for the zero Addr.
func Network(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	if a = a.Unmap(); a.Is4() {
		return a.String()
	}
	network, _ := a.WithZone("").Prefix(64) // it has more bits
	return network.String()
}

// PathPrefix returns the first two segments of a path: enough to find a route, without the names
// of objects that most paths end with.
func PathPrefix(path string) string {
	for i, slashes := 0, 0; i < len(path); i++ {
		if path[i] == '/' {
			if slashes++; slashes == 3 {
				return Clean(path[:i+1])
			}
		}
	}
	return Clean(path)
}

// OfRequest sets what a request to a listener itself tells.
func (d *Decision) OfRequest(r *http.Request, listener string) {
	d.Listener, d.Path, d.Caller = listener, PathPrefix(r.URL.Path), CallerOf(r)
	d.RequestID, d.TraceID = RequestID(r.Header), TraceID(r.Header)
}

// CallerOf returns the name in the certificate of a client, or else its network.
func CallerOf(r *http.Request) string {
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		if name := claims.Identity(r.TLS.VerifiedChains[0][0]); name != "" {
			return Clean(name)
		}
	}
	a, _ := netip.ParseAddrPort(r.RemoteAddr) // zero for other networks, such as Unix sockets
	return Network(a.Addr())
}

// RequestID returns the request id that a request has, empty if none.
func RequestID(h http.Header) string {
	if v := h["X-Request-Id"]; len(v) > 0 {
		return Clean(v[0])
	}
	return ""
}

// TraceID returns the trace id of a request with a valid traceparent, empty without one: W3C Trace
// Context, section 3.2.
func TraceID(h http.Header) string {
	if v := h["Traceparent"]; len(v) == 1 {
		return traceID(v[0])
	}
	return ""
}

func traceID(parent string) string {
	parent = strings.TrimSpace(parent)
	if len(parent) < 55 || parent[2] != '-' || parent[35] != '-' || parent[52] != '-' {
		return ""
	}
	version, trace, span, flags := parent[:2], parent[3:35], parent[36:52], parent[53:55]
	later := version != "00" && (len(parent) == 55 || parent[55] == '-') // its fields begin with those of version 00
	switch {
	case !isHex(version + trace + span + flags), version == "ff", len(parent) > 55 && !later:
		return ""
	case strings.Trim(trace, "0") == "", strings.Trim(span, "0") == "":
		return ""
	}
	return trace
}

// isHex reports whether a text has digits and the letters a to f only.
func isHex(text string) bool { return strings.Trim(text, "0123456789abcdef") == "" }
