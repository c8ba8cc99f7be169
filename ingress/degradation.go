package ingress

import "github.com/seed90641741/spillway"

// Degradation returns how far answers to calls of a criticality should be degraded
// now. It is [spillway.DegradationNone] unless the shedder enforces. It allocates
// nothing and takes no lock. A handler gets the level that its request was admitted
// with from the context: [spillway.DegradationFrom].
func (s *Server) Degradation(c spillway.Criticality) spillway.DegradationLevel {
	return s.core.Degradation(c)
}

// AcceptRatio returns, as a decimal number, the share of the calls of a criticality that this
// server has accepted recently, or nothing if it accepts about all of them. Adapters send it
// with each answer, so that clients that call rarely benefit from the calls of others
// (Throttle.Advise in package throttle).
//
// Rejections by the rate limit, by MaxInFlight and by the shedder count, of the gates that
// enforce; those for a quota do not, as they concern one customer. At the [Edge] it returns
// nothing unless [Trust].AcceptRatio is set: untrusted clients must not learn how loaded the
// server is. It allocates nothing.
func (s *Server) AcceptRatio(c spillway.Criticality) string { return s.core.AcceptRatio(c).String() }
