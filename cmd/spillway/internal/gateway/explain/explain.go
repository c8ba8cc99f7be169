// Package explain reports what a proxy would do with one request, and why: it runs the code
// that serves requests, with a server in memory instead of the endpoints.
package explain

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/routes"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/claims"
)

// A Question is a request to explain.
type Question struct {
	// Listener is the name of the listener. Empty means the first one.
	Listener string
	// Client is the name in the certificate of the client. Empty means that the client
	// has no certificate.
	Client string
	// Request is a server request. Its body is not read: ContentLength zero bytes are
	// used instead.
	Request *http.Request
	// Files is the limit on open files of the process, to which caps are lowered. Zero: it is unknown.
	Files int
}

// An Explanation says what a proxy does with a request, and why. All of it comes from
// the code that serves requests, run with simulated endpoints and no other request in
// flight.
type Explanation struct {
	Request  string        `json:"request"`
	Listener ListenerFacts `json:"listener"`
	Headers  []HeaderFacts `json:"headers"`
	Routes   []RouteFacts  `json:"routes"`
	Call     *CallFacts    `json:"call,omitempty"` // nil: no route matches
	Gates    []GateFacts   `json:"gates"`
	// Caps are those of the listener and the cluster that the limit on open files lowers.
	Caps    []CapFacts   `json:"caps,omitempty"`
	Files   int          `json:"open_files,omitempty"` // that limit; 0: it is unknown
	Retries *RetryFacts  `json:"retries,omitempty"`
	Target  *TargetFacts `json:"target,omitempty"`
	// Status is what the client gets if the endpoint answers 200.
	Status int `json:"status"`
}

// ListenerFacts describes the listener of a request, and which claims it trusts.
type ListenerFacts struct {
	Name     string `json:"name"`
	Address  string `json:"address"`
	Boundary string `json:"boundary"`
	Client   string `json:"client,omitempty"`
	Trust    string `json:"trust"`
}

// CallFacts are the properties of a request that policies use.
type CallFacts struct {
	Cluster     string `json:"cluster"`
	Criticality string `json:"criticality"`
	// DecidedBy says whether route, identity or header decided the class.
	DecidedBy string `json:"criticality_decided_by"`
	// Precedence says which of these takes precedence at this listener.
	Precedence string `json:"criticality_precedence"`
	// Level and Progress of the task; without a level the proxy draws one.
	Level    int    `json:"level,omitempty"`
	Progress int    `json:"progress,omitempty"`
	Customer string `json:"customer,omitempty"`
	// CustomerDecidedBy says whether identity or header decided the customer, or why the
	// request has no customer.
	CustomerDecidedBy string `json:"customer_decided_by"`
	Attempt           int    `json:"attempt"` // from 1
	Deadline          string `json:"deadline,omitempty"`
	Exempt            bool   `json:"exempt"`
	// LimitKey names what the request waits for, and so its limit on requests in flight: the cluster, or what the key of the
	// route names in it.
	LimitKey string `json:"limit_key"`
}

// CapFacts is a cap on connections or requests that is lower than configured.
type CapFacts struct {
	Field      string `json:"field"`
	Configured int    `json:"configured"` // 0 or less: no cap
	InForce    int    `json:"in_force"`
}

// TargetFacts says where a request goes, and how.
type TargetFacts struct {
	Cluster   string   `json:"cluster"`
	Endpoints []string `json:"endpoints"`
	Protocol  string   `json:"protocol"`
	TLS       bool     `json:"tls"`
	// Sent are the headers that the endpoint gets, without the headers of the request
	// that are forwarded unchanged.
	Sent []string `json:"sent"`
}

// Explain returns what a proxy with a valid configuration would do with a request. It opens
// no port, reads no file, and sends nothing.
func Explain(c *config.Config, q Question) (*Explanation, error) {
	d := c.Defaulted()
	at := 0
	if q.Listener != "" {
		at = slices.IndexFunc(d.Listeners, func(l config.Listener) bool { return l.Name == q.Listener })
	}
	if at < 0 || at >= len(d.Listeners) {
		return nil, fmt.Errorf("unknown listener %.64q, must be the name of a listener in the file", q.Listener)
	}
	l := &d.Listeners[at]
	if q.Client != "" && !claims.IsIdentity(q.Client) {
		return nil, fmt.Errorf("client is %.64q, must begin with uri:, dns: or cn:, such as uri:spiffe://shop/cart", q.Client)
	}
	if q.Client != "" && (l.TLS == nil || l.TLS.ClientCA == "") {
		return nil, fmt.Errorf("listener %s verifies no client certificates, so no client can be %.64q: set tls.client_ca", l.Name, q.Client)
	}
	x, err := newRehearsal(d, l)
	if err != nil {
		return nil, err
	}
	return (&explaining{config: d, listener: l, question: q, rehearsal: x}).explain()
}

// explaining is the state of one call of Explain.
type explaining struct {
	config    *config.Config
	listener  *config.Listener
	question  Question
	rehearsal *rehearsal

	route  *routes.Route // that matches; nil: none
	call   spillway.Call
	claims ingress.Claims
	left   time.Duration // to the deadline; 0: no deadline
	answer answered
}

func (e *explaining) explain() (*Explanation, error) {
	r := e.request()
	e.route = e.rehearsal.Routes().Match(r)
	if e.route != nil {
		e.call, e.claims, e.left = e.judge(r)
	}
	exempt := e.route != nil && e.rehearsal.Exempt(e.route, r)
	e.answer = e.rehearsal.play(r)
	if err := e.rehearsal.close(); err != nil {
		return nil, err
	}
	all := &Explanation{
		Request: r.Method + " " + r.RequestURI + " of " + r.Host, Listener: e.listenerFacts(),
		Headers: []HeaderFacts{}, Routes: e.routes(r), Status: e.answer.status,
	}
	all.Gates, all.Caps, all.Files = e.gates(exempt), e.caps(), e.question.Files
	if e.route == nil {
		return all, nil
	}
	all.Headers = e.headers()
	all.Call = &CallFacts{
		Cluster: e.route.Config.Cluster, Criticality: e.call.Criticality.String(), DecidedBy: e.decided(), Precedence: e.precedence(),
		Level: int(e.call.Level), Progress: int(e.call.Progress), Customer: e.call.Customer, CustomerDecidedBy: e.customerDecided(),
		Attempt: int(e.call.Attempt) + 1, Exempt: exempt, LimitKey: e.route.LimitKey,
	}
	if e.left > 0 {
		all.Call.Deadline = e.left.String()
	}
	all.Target = e.target()
	var err error
	all.Retries, err = e.retries()
	return all, err
}

func (e *explaining) cluster() *config.Cluster {
	i := slices.IndexFunc(e.config.Clusters, func(x config.Cluster) bool { return x.Name == e.route.Config.Cluster })
	return &e.config.Clusters[i] // it is there: routes were checked
}

// inside reports whether the listener is behind the edge.
func (e *explaining) inside() bool { return e.listener.Boundary == "internal" }

// judge returns the call and the claims that the gate sees, and the time to the deadline. The
// gate reads the clock itself, so judge repeats until that reading was quick.
func (e *explaining) judge(r *http.Request) (call spillway.Call, claims ingress.Claims, left time.Duration) {
	for range 100 {
		now := time.Now()
		call, claims = e.rehearsal.Judge(e.route, now, r)
		if call.Deadline.IsZero() {
			return call, claims, 0
		}
		left = call.Deadline.Sub(now).Round(time.Millisecond)
		if time.Since(now) < time.Millisecond/4 {
			break
		}
	}
	return call, claims, left
}

// request returns a new copy of the request, as a server receives it.
func (e *explaining) request() *http.Request {
	q := e.question
	r := q.Request.Clone(q.Request.Context())
	if e.listener.TLS != nil {
		r.TLS = &tls.ConnectionState{HandshakeComplete: true}
	}
	if q.Client != "" {
		r.TLS.VerifiedChains = [][]*x509.Certificate{{certificateOf(q.Client)}}
	}
	r.Body = http.NoBody
	if r.ContentLength != 0 {
		r.Body = io.NopCloser(io.LimitReader(zeros{}, r.ContentLength))
	}
	return r
}

// certificateOf returns a client certificate with this name.
func certificateOf(name string) *x509.Certificate {
	c := new(x509.Certificate)
	kind, rest, _ := strings.Cut(name, ":")
	switch u, err := url.Parse(rest); {
	case kind == "uri" && err == nil:
		c.URIs = []*url.URL{u}
	case kind == "dns":
		c.DNSNames = []string{rest}
	default:
		c.Subject.CommonName = strings.TrimPrefix(name, "cn:")
	}
	return c
}

func (e *explaining) listenerFacts() ListenerFacts {
	f := ListenerFacts{
		Name: e.listener.Name, Address: e.listener.Address, Boundary: "edge", Client: e.question.Client,
		Trust: "untrusted: clients may only lower their class or shorten their deadline",
	}
	if e.inside() {
		f.Boundary = "internal"
		f.Trust = fmt.Sprintf("trusted: class up to %v, the highest that %s may use; attempt number and deadline", e.highest(), e.who())
	}
	return f
}

// highest returns the highest class that the trust rules allow the client at an internal
// listener.
func (e *explaining) highest() spillway.Criticality {
	trust := e.config.Ingress(e.listener, &e.config.Clusters[0]).Trust
	claims := ingress.Claims{Criticality: spillway.CriticalPlus, Labelled: true, Identity: e.question.Client}
	return trust.Judge(time.Time{}, spillway.Call{}, claims).Criticality
}

func (e *explaining) who() string {
	if _, ok := e.listener.Callers[e.question.Client]; ok {
		return e.question.Client
	}
	return "a client without an entry in callers"
}

func (e *explaining) target() *TargetFacts {
	c := e.cluster()
	f := &TargetFacts{Cluster: c.Name, Endpoints: c.Endpoints, TLS: c.TLS != nil, Sent: []string{}}
	sent := e.rehearsal.stage.sent.Load()
	if sent == nil {
		f.Protocol = "nothing is sent"
		return f
	}
	f.Protocol = sent.Proto
	for _, name := range sortedKeys(sent.Header) {
		came, goes := e.question.Request.Header[name], sent.Header[name]
		if !slices.Equal(came, goes) && !ofTransport[name] {
			f.Sent = append(f.Sent, name+": "+e.sent(name))
		}
	}
	return f
}

// ofTransport are headers that the HTTP transport sets itself.
var ofTransport = map[string]bool{"Accept-Encoding": true, "Content-Length": true, "User-Agent": true}
