package spillgrpc

import (
	"context"
	"net"
	"net/netip"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/claims"
	"github.com/seed90641741/spillway/internal/serving"
	"github.com/seed90641741/spillway/ratelimit"
)

// An arrival is what is known of a call when it arrives.
type arrival = serving.Arrival

// judge fills in a from the call, with as much of its claims as is believed.
func (s *Server) judge(ctx context.Context, now time.Time, method string, a *arrival) {
	if s.classify != nil {
		a.Call = s.classify(ctx, method)
	}
	if a.Call.Key == "" {
		a.Call.Key = method
	}
	var said ingress.Claims
	trust := s.ingress.Trust()
	inside := trust.Boundary == ingress.Internal
	md := incomingOf(ctx)
	a.Said = importanceKeys.Of(md)
	var trace []string
	if inside {
		trace = md[keyTrace]
	}
	a.Read(&said, trace)
	if a.CountsAttempts(trust) {
		said.Attempt = claims.Attempt(md[keyAttempts])
	}
	if s.ingress.WantsCaller() {
		a.Caller = callerOf(ctx, md)
		said.Identity = s.identity(ctx)
	} else if inside && len(trust.MaxByIdentity) > 0 {
		said.Identity = s.identity(ctx)
	}
	if d, ok := ctx.Deadline(); ok {
		if left := d.Sub(now); left > trust.MaxTimeout {
			said.Timeout = left // Apply bounds it
		} else if a.Call.Deadline.IsZero() || d.Before(a.Call.Deadline) {
			a.Call.Deadline = d // to compute it again would cost more
		}
	}
	a.Believe(now, trust, &said)
	if !a.Call.Level.Valid() && s.looks.Load() > 0 {
		a.Call.Level, _ = ctx.Value(drawn{}).(spillway.Level)
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
