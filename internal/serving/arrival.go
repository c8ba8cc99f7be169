package serving

import (
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/claims"
	"github.com/seed90641741/spillway/internal/invalid"
	"github.com/seed90641741/spillway/ratelimit"
)

// An Arrival is what is known of a request when it arrives. It is passed by reference, as a copy
// costs more than many decisions.
type Arrival struct {
	Call     spillway.Call
	Caller   ratelimit.Caller
	Said     claims.Fields // as they came
	Labelled bool          // the calls that the request causes inherit its class
	Edge     bool          // the client is not trusted

	claimed  bool           // an untrusted client has set the deadline of Call
	believed spillway.Level // 0: none
}

// Read adds what the fields of a, and the trace if there is no level, say to c.
func (a *Arrival) Read(c *ingress.Claims, trace []string) {
	said := a.Said.Read()
	c.Criticality, c.Labelled, c.Level, c.Progress = said.Criticality, said.Labelled, said.Level, said.Progress
	if c.Level == 0 && len(trace) > 0 {
		c.TraceLevel = claims.TraceLevel(trace)
	}
}

// CountsAttempts reports whether the attempt number of a request counts.
func (a *Arrival) CountsAttempts(t *ingress.Trust) bool {
	return t.Boundary == ingress.Internal || a.Call.Customer != ""
}

// Believe applies the claims of a request. At an edge a label counts only if it has lowered
// the class: any other is dropped.
func (a *Arrival) Believe(now time.Time, trust *ingress.Trust, c *ingress.Claims) {
	inside := trust.Boundary == ingress.Internal
	a.Caller.Identity = c.Identity
	own := a.Call.Deadline
	trust.Apply(now, &a.Call, c)
	a.Edge = !inside
	a.claimed = a.Edge && !a.Call.Deadline.Equal(own)
	if inside {
		a.believed = c.Level
	}
	a.Labelled = a.Call.Criticality != spillway.Critical || c.Labelled && inside
}

// Restate returns the fields with which a request is served, which say what was believed of its class and level, and reports whether they
// are other ones than it came with. What was not believed must not be passed on to services that would believe it, by handlers that pass on
// all headers or all baggage.
func (a *Arrival) Restate() (f claims.Fields, changed bool) {
	f = a.Said
	changed = f.Restate(a.Call.Criticality, a.Labelled, a.believed)
	return f, changed
}

// An Owned closes the Server that [Own] has made. Nil closes none.
type Owned func() error

// Close closes it.
func (o Owned) Close() error {
	if o == nil {
		return nil
	}
	return o()
}

// Own returns the given Server, or, if that is nil, one with the zero [ingress.Config], which then is owned. The error is one of pkg.
func Own(pkg string, given *ingress.Server) (s *ingress.Server, owned Owned, err error) {
	if given != nil {
		return given, nil, nil
	}
	if s, err = ingress.New(ingress.Config{}); err != nil {
		return nil, nil, invalid.In(pkg, "Ingress", err)
	}
	return s, s.Close, nil
}
