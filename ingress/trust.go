package ingress

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/invalid"
)

// Boundary says what lies on the other side of a listener.
type Boundary uint8

const (
	// Edge is a listener that untrusted clients may connect to. It is the zero Boundary.
	Edge Boundary = iota
	// Internal is a listener that only services of the same system reach, which
	// have proven who they are.
	Internal
)

var boundaryNames = [...]string{"edge", "internal"}

// String returns the text form: edge or internal.
func (b Boundary) String() string {
	if int(b) >= len(boundaryNames) {
		return fmt.Sprintf("Boundary(%d)", uint8(b))
	}
	return boundaryNames[b]
}

// Claims are what a request says of itself. The zero Claims say nothing.
type Claims struct {
	// Criticality counts if Labelled is set.
	Criticality spillway.Criticality
	Labelled    bool
	// Level and Progress order requests of a class: see [spillway.Level]. Zero and values that are not
	// valid mean no Level.
	Level    spillway.Level
	Progress spillway.Progress
	// TraceLevel is a level made of the id of the trace, for calls that have no other.
	TraceLevel spillway.Level
	// Attempt is 0 for the first attempt.
	Attempt int
	// Timeout is for how long the caller will wait. Zero and negative values mean that it is unknown.
	Timeout time.Duration
	// Identity is who the caller has proven to be, as by a certificate. It must
	// never be taken from what the caller just says.
	Identity string
}

// Trust says which of the Claims of a request are believed. The zero Trust is that of an edge.
//
// # The criticality of a request
//
// Three things can say how much a request matters. They are asked in this order,
// and each can only do what those before it allow:
//
//	route     what the server itself knows (Call.Criticality when the call is
//	          judged): the class of a request that says nothing. CRITICAL where
//	          nothing is known.
//	identity  who the caller has proven to be: at an Internal boundary the highest
//	          class that the request can have, whatever route and header say.
//	header    what the request says: X-Request-Criticality, or else the member
//	          criticality of its baggage. Of several values the lowest counts, and
//	          one that is no class says nothing. At the Edge it can only lower the
//	          class of the route. At an Internal boundary it takes the place of the
//	          class of the route, up to the limit of the identity.
//
// So at the Edge the class is min(route, header), and at an Internal boundary it is
// min(header, or else route; identity).
//
// # Its level and progress
//
// At an Internal boundary the Level of the Claims counts, else that of the call, else the
// TraceLevel; and of two Progresses the greater one. At the Edge only Level and Progress of the
// call count: a client that could choose its level would choose the highest. Classify of an
// adapter may set the Level of the call to [spillway.LevelOf] of a user. A call that then has no
// Level gets a random one when it enters.
type Trust struct {
	// Boundary says where requests come from.
	//
	// At the Edge, a request may lower its class and shorten its deadline, which
	// harms no other client: calls on its behalf that fail for the deadline do not count
	// in package egress. Its attempt number counts against its own
	// customer only.
	//
	// At an Internal boundary the label is believed up to the highest class that
	// the caller may use, and so are attempt number and deadline.
	Boundary Boundary
	// MaxByIdentity is the highest class that each caller, by Identity, may use at an
	// Internal boundary.
	MaxByIdentity map[string]spillway.Criticality
	// DefaultMax is the highest class of callers that MaxByIdentity does not name. The zero
	// value is [spillway.Critical].
	DefaultMax spillway.Criticality
	// MaxTimeout bounds how far away a deadline may be. Zero means an hour; it
	// must be 1 ms to 24 h.
	MaxTimeout time.Duration
	// Reasons says how much of the reason for a rejection the client learns.
	Reasons Reasons
	// AcceptRatio sends the accept ratio ([Server.AcceptRatio]) at the Edge, too. Clients with
	// few calls each then send less that would be rejected, and all clients learn how loaded the
	// server is.
	AcceptRatio bool
}

func (t Trust) withDefaults() (Trust, error) {
	t.MaxTimeout = cmp.Or(t.MaxTimeout, time.Hour)
	switch {
	case t.Boundary > Internal:
		return t, invalid.Field("ingress", "Trust.Boundary", t.Boundary, "Edge or Internal")
	case t.Reasons > ReasonsFull:
		return t, invalid.Field("ingress", "Trust.Reasons", t.Reasons, "one of the four")
	case !t.DefaultMax.Valid():
		return t, invalid.Field("ingress", "Trust.DefaultMax", t.DefaultMax, "one of the four")
	case t.MaxTimeout < time.Millisecond || t.MaxTimeout > 24*time.Hour:
		return t, invalid.Field("ingress", "Trust.MaxTimeout", t.MaxTimeout, "1ms to 24h")
	}
	for name, c := range t.MaxByIdentity {
		if !c.Valid() {
			return t, invalid.Field("ingress", fmt.Sprintf("Trust.MaxByIdentity[%q]", name), c, "one of the four")
		}
	}
	t.MaxByIdentity = maps.Clone(t.MaxByIdentity)
	return t, nil
}

// Discloses returns what rejected clients learn: Reasons, or that of the boundary. It is never
// ReasonsByBoundary.
func (t *Trust) Discloses() Reasons {
	switch {
	case t.Reasons != ReasonsByBoundary:
		return t.Reasons
	case t.Boundary == Internal:
		return ReasonsFull
	default:
		return ReasonsCoarse
	}
}

// Judge returns the call with as much of the claims as is believed. What call
// holds already is what the server itself knows: the class of the route, the
// customer, a deadline that the server set. Judge is a pure function; a claim can never
// make it fail.
func (t Trust) Judge(now time.Time, call spillway.Call, c Claims) spillway.Call {
	t.Apply(now, &call, &c)
	return call
}

// Apply is Judge in place, for adapters in which copies of the call would take noticeable time.
func (t *Trust) Apply(now time.Time, call *spillway.Call, c *Claims) {
	call.Criticality = t.criticality(call.Criticality, c)
	call.Attempt = int16(min(max(c.Attempt, 0), math.MaxInt16))
	if t.Boundary == Internal {
		order(call, c)
	}
	if c.Timeout > 0 {
		deadline := now.Add(min(c.Timeout, cmp.Or(t.MaxTimeout, time.Hour)))
		if call.Deadline.IsZero() || deadline.Before(call.Deadline) {
			call.Deadline = deadline
		}
	}
}

// order gives the call the level and the progress that the request claims.
func order(call *spillway.Call, c *Claims) {
	switch {
	case c.Level.Valid():
		call.Level = c.Level
	case !call.Level.Valid() && c.TraceLevel.Valid():
		call.Level = c.TraceLevel
	}
	call.Progress = max(call.Progress, c.Progress)
}

func (t *Trust) criticality(known spillway.Criticality, c *Claims) spillway.Criticality {
	if !known.Valid() {
		known = spillway.Critical
	}
	labelled := c.Labelled && c.Criticality.Valid()
	if t.Boundary == Edge {
		if labelled {
			return min(known, c.Criticality)
		}
		return known
	}
	highest, ok := t.MaxByIdentity[c.Identity]
	if !ok {
		highest = t.DefaultMax
	}
	if labelled {
		known = c.Criticality
	}
	return min(known, highest)
}
