package spillgrpc

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/claims"
	"github.com/seed90641741/spillway/ratelimit"
)

// A legacy is how the calls that a call causes inherit from it.
type legacy struct {
	labelled bool // its class
	edge     bool // its deadline, as that of a stranger, if it has one
	earlier  bool // its deadline, which is before that of its context
}

// An arrival is what is known of a call when it arrives. It is passed by reference, as a copy
// costs more than many decisions.
type arrival struct {
	legacy

	call     spillway.Call
	caller   ratelimit.Caller
	said     claims.Fields  // as they came
	believed spillway.Level // of those; 0: none
}

// judge fills in a from the call, with as much of its claims as is believed. At an edge a
// label counts only if it has lowered the class: any other is dropped.
func (s *Server) judge(ctx context.Context, now time.Time, method string, a *arrival) {
	if s.classify != nil {
		a.call = s.classify(ctx, method)
	}
	if a.call.Key == "" {
		a.call.Key = method
	}
	var said ingress.Claims
	trust := s.ingress.Trust()
	inside := trust.Boundary == ingress.Internal
	md := incomingOf(ctx)
	a.said = claims.Fields{Criticality: md[keyCriticality], Level: md[keyLevel], Progress: md[keyProgress], Baggage: md[keyBaggage]}
	matters := a.said.Read()
	said.Criticality, said.Labelled, said.Level, said.Progress = matters.Criticality, matters.Labelled, matters.Level, matters.Progress
	if inside {
		if a.believed = said.Level; said.Level == 0 {
			said.TraceLevel = claims.TraceLevel(md[keyTrace])
		}
	}
	if inside || a.call.Customer != "" { // else nobody wants to know
		said.Attempt = attemptOf(md[keyAttempts])
	}
	if s.ingress.WantsCaller() {
		a.caller = callerOf(ctx, md)
		a.caller.Identity = s.identity(ctx)
	} else if inside && len(trust.MaxByIdentity) > 0 {
		a.caller.Identity = s.identity(ctx)
	}
	said.Identity = a.caller.Identity
	d, ok := ctx.Deadline()
	if ok {
		if left := d.Sub(now); left > trust.MaxTimeout {
			said.Timeout = left // Apply bounds it
		} else if a.call.Deadline.IsZero() || d.Before(a.call.Deadline) {
			a.call.Deadline = d // to compute it again would cost more
		}
	}
	trust.Apply(now, &a.call, &said)
	if !a.call.Level.Valid() && s.looks.Load() > 0 {
		a.call.Level, _ = ctx.Value(drawn{}).(spillway.Level)
	}
	a.legacy = legacy{
		labelled: a.call.Criticality != spillway.Critical || said.Labelled && inside,
		edge:     !inside,
		earlier:  !a.call.Deadline.IsZero() && (!ok || a.call.Deadline.Before(d)),
	}
}

// callerOf returns what is known of who makes a call, but for the identity.
func callerOf(ctx context.Context, md metadata.MD) (c ratelimit.Caller) {
	if agent := md["user-agent"]; len(agent) > 0 {
		c.Application = agent[0]
	}
	if p, ok := peer.FromContext(ctx); ok {
		if a, ok := p.Addr.(*net.TCPAddr); ok {
			c.Addr = a.AddrPort().Addr().Unmap()
		} else if a, err := netip.ParseAddrPort(p.Addr.String()); err == nil {
			c.Addr = a.Addr().Unmap()
		}
	}
	return c
}

// incomingOf returns the metadata of a call as they are, with keys in lower case as
// HTTP/2 has them. They must not be changed. The functions of package metadata
// copy all of them, or search all of them for a key that is not there, which for
// the three keys of a call costs the same as the decision that follows.
func incomingOf(ctx context.Context) metadata.MD {
	if md, ok := ctx.Value(incomingKey).(metadata.MD); ok {
		return md
	}
	md, _ := metadata.FromIncomingContext(ctx)
	return md
}

// incomingKey is the key under which package metadata looks in a context.
var incomingKey = func() (key any) {
	metadata.ValueFromIncomingContext(spy{context.Background(), &key}, "")
	return key
}()

// spy is a context that reports what it is asked for.
type spy struct {
	context.Context //nolint:containedctx // it is one

	asked *any
}

func (s spy) Value(key any) any {
	*s.asked = key
	return nil
}

// CertifiedPeer returns the first URI, else the first DNS name, else the common
// name of the certificate of the caller, if it was verified.
func CertifiedPeer(ctx context.Context) string {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return ""
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.VerifiedChains) == 0 {
		return ""
	}
	return claims.Identity(info.State.VerifiedChains[0][0])
}

// attemptOf returns which attempt the metadata say that this is, from 0: the
// highest they name.
func attemptOf(values []string) (n int) {
	for _, v := range values {
		if i, err := strconv.ParseInt(strings.TrimSpace(v), 10, 32); err == nil {
			n = max(n, int(i))
		}
	}
	return n
}
