package explain

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/message"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/routes"
	"github.com/seed90641741/spillway/ingress"
)

// HeaderFacts describes a header with a claim about the request.
type HeaderFacts struct {
	Name string `json:"name"`
	// Says is the claim; empty if it is invalid.
	Says string `json:"says,omitempty"`
	// Believed is whether the claim is trusted.
	Believed bool   `json:"believed"`
	Why      string `json:"why"`
	// Sent is what the endpoint gets in its place; empty: nothing.
	Sent string `json:"sent,omitempty"`
}

// A claimingHeader has a claim about the request.
type claimingHeader struct {
	name    string
	explain func(e *explaining, f *HeaderFacts, alone ingress.Claims)
}

var claiming = []claimingHeader{
	{"X-Request-Criticality", (*explaining).class},
	{"Baggage", (*explaining).baggage},
	{"X-Request-Level", (*explaining).level},
	{"X-Request-Progress", (*explaining).progress},
	{"X-Envoy-Attempt-Count", (*explaining).attempt},
	{"Grpc-Previous-Rpc-Attempts", (*explaining).attempt},
	{"Amz-Sdk-Request", (*explaining).attempt},
	{"X-Envoy-Expected-Rq-Timeout-Ms", (*explaining).deadline},
	{"Grpc-Timeout", (*explaining).deadline},
}

func (e *explaining) headers() []HeaderFacts {
	all := []HeaderFacts{}
	for _, c := range claiming {
		if values := e.question.Request.Header[c.name]; len(values) > 0 {
			f := HeaderFacts{Name: c.name, Sent: e.sent(c.name)}
			c.explain(e, &f, e.alone(c.name, values))
			all = append(all, f)
		}
	}
	if name := e.route.Header; name != "" {
		all = append(all, e.customer(name))
	}
	return append(all, e.forwarded()...)
}

// sent returns the value of a header that the endpoint gets. Timeouts are shown in words,
// because they shrink meanwhile.
func (e *explaining) sent(name string) string {
	s := e.rehearsal.stage.sent.Load()
	switch {
	case s == nil || len(s.Header[name]) == 0:
		return ""
	case name == message.RequestID && !slices.Equal(s.Header[name], e.question.Request.Header[name]):
		return "a new UUID"
	case name == "X-Request-Level" && e.call.Level == 0:
		return "1 to 128, drawn at random for each request"
	case name == "X-Envoy-Expected-Rq-Timeout-Ms" || name == "Grpc-Timeout":
		return "the time left, of " + e.left.String()
	case name == "Baggage" && e.call.Level == 0:
		return strings.ReplaceAll(strings.Join(s.Header[name], ", "), "level="+s.Header.Get("X-Request-Level"), "level=(drawn)")
	default:
		return strings.Join(s.Header[name], ", ")
	}
}

// alone returns what one header claims, by itself.
func (e *explaining) alone(name string, values []string) ingress.Claims {
	r := e.request()
	r.Header = http.Header{name: values}
	if of := e.route.Header; of != "" { // without it, attempt headers are not read
		r.Header[of] = e.question.Request.Header[of]
	}
	_, claims := e.rehearsal.Judge(e.route, time.Now(), r)
	return claims
}

func (e *explaining) class(f *HeaderFacts, alone ingress.Claims) {
	if !alone.Labelled {
		f.Why = "not a class; must be CRITICAL_PLUS, CRITICAL, SHEDDABLE_PLUS or SHEDDABLE"
		return
	}
	f.Says = alone.Criticality.String()
	f.Believed = alone.Criticality == e.call.Criticality && e.claims.Criticality == alone.Criticality
	inside := e.inside()
	switch {
	case e.claims.Criticality != alone.Criticality:
		f.Why = "another header takes precedence: " + e.claims.Criticality.String()
	case f.Believed && inside:
		f.Why = "at an internal boundary a class is trusted up to " + e.highest().String()
	case f.Believed:
		f.Why = "a request may always lower its class"
	case inside:
		f.Why = fmt.Sprintf("capped at %v, the highest class that %s may use", e.call.Criticality, e.who())
	default:
		f.Why = fmt.Sprintf("at an edge a request may only lower its class; the route sets %v", e.route.Class)
	}
}

// baggage describes a baggage by the class in it, or else by the level.
func (e *explaining) baggage(f *HeaderFacts, alone ingress.Claims) {
	if !alone.Labelled && alone.Level > 0 {
		e.level(f, alone)
		return
	}
	e.class(f, alone)
}

// notOrdered reports whether an edge has dropped a level or a progress.
func (e *explaining) notOrdered(f *HeaderFacts) bool {
	if e.inside() {
		return false
	}
	f.Why = "at an edge clients cannot choose it: the proxy draws a level for each request"
	return true
}

func (e *explaining) level(f *HeaderFacts, alone ingress.Claims) {
	if alone.Level == 0 {
		f.Why = "not a level; must be 1 to 128"
		return
	}
	f.Says = fmt.Sprintf("level %d", alone.Level)
	switch {
	case e.notOrdered(f):
	case e.claims.Level != alone.Level:
		f.Why = fmt.Sprintf("another header takes precedence: level %d", e.claims.Level)
	default:
		f.Believed, f.Why = true, "at an internal boundary the level of a task is trusted"
	}
}

func (e *explaining) progress(f *HeaderFacts, _ ingress.Claims) {
	switch {
	case e.notOrdered(f):
	case e.claims.Level == 0:
		f.Why = "it counts with a level only"
	case e.claims.Progress == 0:
		f.Why = "not a number of served calls; must be 0 to 255"
	default:
		f.Says = fmt.Sprintf("%d calls of the task were served before", e.claims.Progress)
		f.Believed, f.Why = true, "at an internal boundary the progress of a task is trusted"
	}
}

func (e *explaining) attempt(f *HeaderFacts, alone ingress.Claims) {
	inside := e.inside()
	switch {
	case !inside && e.call.Customer == "":
		f.Why = "at an edge attempts are counted by customer, and this request has no customer"
	case alone.Attempt == 0 && e.notOfGRPC(f):
	case alone.Attempt == 0:
		f.Why = "this is the first attempt"
	case alone.Attempt != e.claims.Attempt:
		f.Says = fmt.Sprintf("%d attempts before this one", alone.Attempt)
		f.Why = "another header has a higher number"
	default:
		f.Says = fmt.Sprintf("%d attempts before this one", alone.Attempt)
		f.Believed = true
		f.Why = "counted for customer " + e.call.Customer + " only"
		if inside {
			f.Why = "at an internal boundary attempts are counted for all customers together"
		}
	}
}

func (e *explaining) deadline(f *HeaderFacts, alone ingress.Claims) {
	if alone.Timeout <= 0 {
		if !e.notOfGRPC(f) {
			f.Why = "not a valid timeout"
		}
		return
	}
	f.Says = alone.Timeout.String()
	switch f.Believed = alone.Timeout.Round(time.Millisecond) == e.left; {
	case f.Believed:
		f.Why = "a request may always shorten its deadline"
	case alone.Timeout != e.claims.Timeout:
		f.Why = "another header takes precedence: " + e.claims.Timeout.String()
	case e.route.Config.Timeout > 0 && e.left == e.route.Config.Timeout:
		f.Why = "the route's timeout is shorter"
	default:
		f.Why = fmt.Sprintf("longer than max_timeout of the listener, %v", e.left)
	}
}

// notOfGRPC reports whether a gRPC header was ignored because the request is not a gRPC
// call.
func (e *explaining) notOfGRPC(f *HeaderFacts) bool {
	if !strings.HasPrefix(f.Name, "Grpc-") || e.question.Request.Method == http.MethodPost {
		return false
	}
	f.Why = "gRPC headers count in POST requests only"
	return true
}

// customer describes the header that names the customer.
func (e *explaining) customer(name string) HeaderFacts {
	f := HeaderFacts{Name: name, Sent: e.sent(name)}
	values := e.question.Request.Header[name]
	switch {
	case !e.route.Named:
		f.Why = "at an edge any client can send it, and the route does not set trusted_header"
	case len(values) == 0:
		f.Why = "names the customer for this route, but the request does not have it"
	case len(values[0]) > routes.MaxCustomer:
		f.Why = fmt.Sprintf("longer than %d bytes: it names no customer", routes.MaxCustomer)
	case len(values) > 1:
		f.Why = "sent more than once: none counts"
	default:
		f.Says, f.Believed, f.Why = values[0], true, "names the customer for this route"
	}
	return f
}

// forwarded describes the other headers that are not forwarded unchanged.
func (e *explaining) forwarded() (all []HeaderFacts) {
	sent := e.rehearsal.stage.sent.Load()
	if sent == nil {
		return nil
	}
	for _, name := range sortedKeys(e.question.Request.Header) {
		known := slices.ContainsFunc(claiming, func(c claimingHeader) bool { return c.name == name })
		came, goes := e.question.Request.Header[name], sent.Header[name]
		if known || name == e.route.Header || ofTransport[name] || slices.Equal(came, goes) {
			continue
		}
		f := HeaderFacts{Name: name, Why: "hop-by-hop header: not forwarded"}
		if len(goes) > 0 {
			f.Sent, f.Why = e.sent(name), "the proxy sets this header itself"
			if name == message.RequestID {
				f.Why = "at an edge the proxy sets a new id, unless preserve_external_request_id is set"
			}
		} else if strings.HasPrefix(name, "X-Forwarded-") || name == "Forwarded" {
			f.Why = "at an edge forwarding headers of clients are not trusted"
		}
		all = append(all, f)
	}
	return all
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// zeros reads zero bytes without end.
type zeros struct{}

// Read implements [io.Reader].
func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
