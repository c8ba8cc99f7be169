package explain

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/resources"
)

// GateFacts says what a gate does with a request.
type GateFacts struct {
	Gate   string `json:"gate"`
	Mode   string `json:"mode"`
	Limits string `json:"limits"` // as the file gives them
	// Does is what the gate does with this request and no other request in flight.
	Does string `json:"does"`
	// Rejects says when the gate rejects requests, and how.
	Rejects string `json:"rejects"`
}

// What a client receives.
const (
	says503 = "503 with Retry-After, or UNAVAILABLE"
	says429 = "429 with Retry-After, or RESOURCE_EXHAUSTED"
)

func (e *explaining) gates(exempt bool) []GateFacts {
	l := e.listener
	all := []GateFacts{{
		Gate: "connections", Mode: "enforce",
		Limits: listed(append(config.Given("max_connections", l.MaxConnections), config.Given("connection_rate", &l.ConnectionRate)...)),
		Does:   "accepts its connection", Rejects: "above max_connections or connection_rate, or in an overload by connections, a connection is reset",
	}}
	if e.route == nil {
		return all
	}
	x := e.cluster()
	c := e.config.Ingress(l, x)
	all = append(all,
		e.gate("ratelimit", exempt, c.RateLimitMode, x.RateLimit.Rate > 0, given(&x.RateLimit)+tuned(x, config.TuneRate), "above the rate: "+says503),
		e.gate("quota", exempt, c.QuotaMode, x.Quota != nil, given(e.quota(x.Quota))+learned(x),
			"when the customer is over its limit, lower classes first: "+says429),
		e.gate("shed", exempt, c.ShedMode, true, given(&x.Shed), "when the cluster is overloaded, "+e.before()+": "+says503))
	if b := x.Batch; b != nil {
		f := GateFacts{
			Gate: "batch", Mode: "enforce", Limits: given(b), Does: "lets it through: all slots are free",
			Rejects: "when the queue is full, or the request has waited for max_wait: " + says503,
		}
		if e.answer.status == http.StatusServiceUnavailable && e.rehearsal.stage.sent.Load() == nil {
			f.Does = "not reached: an earlier gate rejects the request"
		}
		all = append(all, f)
	}
	out, err := e.config.Egress(x)
	if err != nil { // cannot be: Check has found it good
		return all
	}
	return append(all,
		e.gate("throttle", false, out.ThrottleMode, true, given(&x.Throttle),
			"while the cluster rejects most calls of this class, the excess: "+says503),
		e.gate("inflight", false, out.InFlightMode, true, given(&x.Inflight)+tuned(x, config.TuneInFlight)+controlled(x),
			"while max_requests attempts are in flight: "+says503))
}

// quota returns q without the limits of other customers.
func (e *explaining) quota(q *config.Quota) *config.Quota {
	if q == nil {
		return nil
	}
	own := *q
	own.Customers = nil
	if l, ok := q.Customers[e.call.Customer]; ok {
		own.Customers = map[string]config.Limit{e.call.Customer: l}
	}
	return &own
}

// learned says whether the quota charges costs that are learned.
func learned(x *config.Cluster) string {
	if l := x.LearnCosts; l != nil {
		return ", costs learned by " + cmp.Or(l.By, "customer")
	}
	return ""
}

// tuned says whether tune moves a configured limit.
func tuned(x *config.Cluster, limit string) string {
	if t := x.Tune; t != nil && cmp.Or(t.Limit, config.TuneRate) == limit {
		return fmt.Sprintf(", changed by tune in mode %s", cmp.Or(t.Mode, config.Mode(spillway.ModeObserve.String())))
	}
	return ""
}

// controlled says whether a control plane sets the limit.
func controlled(x *config.Cluster) string {
	if x.XDS == nil {
		return ""
	}
	return ", max_requests set by the control plane for " + x.XDS.Cluster
}

// before returns which classes are rejected before the class of the request.
func (e *explaining) before() string {
	var lower []string
	for c := spillway.Sheddable; c < e.call.Criticality; c++ {
		lower = append(lower, c.String())
	}
	if len(lower) == 0 {
		return "rejects this class first"
	}
	return "rejects this class only after " + strings.Join(lower, " and ")
}

// gate describes the gate of a policy, with the event that it reported.
func (e *explaining) gate(policy string, exempt bool, mode spillway.Mode, configured bool, limits, rejects string) GateFacts {
	f := GateFacts{Gate: policy, Mode: mode.String(), Limits: limits, Rejects: rejects}
	event, asked := e.rehearsal.event(policy)
	switch {
	case !configured:
		f.Does, f.Mode = "not used: none is configured", spillway.ModeOff.String()
	case exempt:
		f.Does, f.Rejects = "not used: the request is exempt", ""
	case mode == spillway.ModeOff:
		f.Does = "not used: it is off"
	case !asked:
		f.Does = "not reached: an earlier gate rejects the request"
	case event.Rejected && mode == spillway.ModeObserve:
		f.Does = "would reject it, but lets it through: " + reason(event.Err)
	case event.Rejected:
		f.Does = "rejects it: " + reason(event.Err)
	default:
		f.Does = "lets it through"
	}
	return f
}

func reason(err error) string {
	if r, ok := errors.AsType[*spillway.RejectedError](err); ok && r.Advice != "" {
		return r.Advice
	}
	return fmt.Sprint(err)
}

func given(settings any) string { return listed(config.Given("", settings)) }

func listed(settings []string) string { return cmp.Or(strings.Join(settings, ", "), "the defaults") }

// caps returns the caps of the listener, and of the cluster of the request, that are lower than configured.
func (e *explaining) caps() (all []CapFacts) {
	cluster := ""
	if e.route != nil {
		cluster = e.route.Config.Cluster
	}
	for _, x := range resources.FitOpenFiles(e.config.Defaulted(), e.question.Files) { // a copy
		if of := map[string]string{"listener": e.listener.Name, "cluster": cluster}[x.Part]; of == x.Name {
			all = append(all, CapFacts{x.Part + "s[" + x.Name + "]." + x.Setting, x.Configured, x.InForce})
		}
	}
	return all
}
