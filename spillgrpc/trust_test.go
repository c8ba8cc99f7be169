package spillgrpc

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/claims"
	"github.com/seed90641741/spillway/ratelimit"
)

// TestChain sets a criticality at the first caller, and expects it at the third
// service of a chain, and there in the hands of the shedder. The handlers on the
// way pass on nothing but their context.
func TestChain(t *testing.T) {
	for _, c := range []spillway.Criticality{spillway.Sheddable, spillway.SheddablePlus, spillway.CriticalPlus} {
		inBubble(t, func(t *testing.T) {
			events := &journal{}
			var at spillway.Criticality
			var left time.Duration
			handlers := []step{nil, nil, func(ctx context.Context) error {
				at = spillway.CriticalityFrom(ctx)
				d, _ := ctx.Deadline()
				left = time.Until(d)
				return nil
			}}
			var next *grpc.ClientConn
			for i, handler := range slices.Backward(handlers) {
				gates := internal
				gates.Shed = patient
				if i == 2 {
					gates.Observer = events
				}
				to := next
				if handler == nil {
					handler = func(ctx context.Context) error { return call(ctx, to) }
				}
				client := mustClient(t, ClientConfig{})
				next = open(t, &service{unary: handler}, mustServer(t, gates, ServerConfig{}).Options()...).dial(client.DialOptions()...)
			}
			ctx, cancel := context.WithTimeout(spillway.WithCriticality(t.Context(), c), time.Minute)
			defer cancel()
			if err := call(ctx, next); err != nil {
				t.Fatal(err)
			}
			all := events.take()
			if at != c || len(all) != 1 || all[0].Call.Criticality != c {
				t.Errorf("the handler has %v and the shedder %+v, want %v", at, all, c)
			}
			if left <= 0 || left > time.Minute {
				t.Errorf("%v are left of a minute", left)
			}
		})
	}
}

// TestChainSheds expects the third service of a chain to reject what the first caller
// marked as sheddable, and that only.
func TestChainSheds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		gates := internal
		gates.Load, gates.Shed = busy.Load, patient
		last := open(t, &service{}, mustServer(t, gates, ServerConfig{}).Options()...)
		toLast := last.dial(mustClient(t, ClientConfig{}).DialOptions()...)
		gates.Load = utilization(0)
		first := open(t, &service{unary: func(ctx context.Context) error { return call(ctx, toLast) }}, mustServer(t, gates, ServerConfig{}).Options()...)
		cc := first.dial(mustClient(t, ClientConfig{}).DialOptions()...)
		for c, want := range map[spillway.Criticality]codes.Code{spillway.Sheddable: codes.Unavailable, spillway.Critical: codes.OK, spillway.CriticalPlus: codes.OK} {
			if err := call(spillway.WithCriticality(t.Context(), c), cc); status.Code(err) != want {
				t.Errorf("%v: %v, want %v", c, err, want)
			}
		}
	})
}

// TestTrust expects what an edge and an internal server make of claims.
func TestTrust(t *testing.T) {
	for _, row := range []struct {
		name     string
		boundary ingress.Boundary
		known    spillway.Criticality
		md       string
		class    spillway.Criticality
		attempt  int16
		labelled bool
	}{
		{"edge, raised", ingress.Edge, 0, "x-request-criticality=CRITICAL_PLUS grpc-previous-rpc-attempts=3", spillway.Critical, 0, false},
		{"edge, lowered", ingress.Edge, 0, "x-request-criticality=sheddable", spillway.Sheddable, 0, true},
		{"edge, of the route", ingress.Edge, spillway.CriticalPlus, "", spillway.CriticalPlus, 0, true},
		{"internal, raised", ingress.Internal, 0, "x-request-criticality=CRITICAL_PLUS grpc-previous-rpc-attempts=3", spillway.CriticalPlus, 3, true},
		{"internal, nothing", ingress.Internal, 0, "", spillway.Critical, 0, false},
		{"internal, as it is", ingress.Internal, 0, "x-request-criticality=CRITICAL", spillway.Critical, 0, true},
		{"internal, twice", ingress.Internal, 0, "x-request-criticality=CRITICAL_PLUS x-request-criticality=SHEDDABLE_PLUS", spillway.SheddablePlus, 0, true},
		{"internal, nonsense", ingress.Internal, 0, "x-request-criticality=HIGH grpc-previous-rpc-attempts=many", spillway.Critical, 0, false},
		{"internal, baggage", ingress.Internal, 0, "baggage=a=b,criticality=SHEDDABLE;p=1,c=d", spillway.Sheddable, 0, true},
		{"internal, label before baggage", ingress.Internal, 0, "baggage=criticality=SHEDDABLE x-request-criticality=CRITICAL_PLUS", spillway.CriticalPlus, 0, true},
		{"internal, attempts twice", ingress.Internal, 0, "grpc-previous-rpc-attempts=2 grpc-previous-rpc-attempts=5", spillway.Critical, 5, false},
		{"internal, attempts below zero", ingress.Internal, 0, "grpc-previous-rpc-attempts=-5", spillway.Critical, 0, false},
	} {
		gates := ingress.Config{Trust: ingress.Trust{Boundary: row.boundary, DefaultMax: spillway.CriticalPlus}}
		s := mustServer(t, gates, ServerConfig{Classify: func(context.Context, string) spillway.Call { return spillway.Call{Criticality: row.known} }})
		var pairs []string
		for kv := range strings.FieldsSeq(row.md) {
			k, v, _ := strings.Cut(kv, "=")
			pairs = append(pairs, k, v)
		}
		a := judged(s, metadata.NewIncomingContext(t.Context(), metadata.Pairs(pairs...)))
		if a.Call.Criticality != row.class || a.Call.Attempt != row.attempt || a.Labelled != row.labelled || a.Edge != (row.boundary == ingress.Edge) || a.Call.Key != methodUnary {
			t.Errorf("%s: %+v", row.name, a)
		}
	}
}

// TestDeadlines expects deadlines of untrusted clients to be bounded, and the deadlines of a
// route to be enforced.
func TestDeadlines(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		for _, row := range []struct {
			claimed, route, want time.Duration // 0: none
		}{
			{0, 0, 0},
			{time.Minute, 0, time.Minute},
			{10 * time.Hour, 0, time.Hour},
			{time.Minute, time.Second, time.Second},
			{0, time.Second, time.Second},
			{time.Second, time.Minute, time.Second},
		} {
			s := mustServer(t, internal, ServerConfig{Classify: func(context.Context, string) (c spillway.Call) {
				if row.route > 0 {
					c.Deadline = time.Now().Add(row.route)
				}
				return c
			}})
			ctx := t.Context()
			if row.claimed > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, row.claimed)
				defer cancel()
			}
			_, err := s.UnaryInterceptor(ctx, nil, &grpc.UnaryServerInfo{FullMethod: methodUnary}, func(ctx context.Context, _ any) (any, error) {
				d, ok := ctx.Deadline()
				if got := time.Until(d); ok != (row.want > 0) || ok && got != row.want {
					t.Errorf("%+v: %v", row, got)
				}
				return nil, nil
			})
			if err != nil {
				t.Error(err)
			}
		}
	})
}

// TestPeerIdentity expects callers of an internal server judged by their certificate.
func TestPeerIdentity(t *testing.T) {
	ca := newAuthority(t)
	gates := internal
	gates.Shed = patient
	gates.Trust.DefaultMax = spillway.Sheddable
	gates.Trust.MaxByIdentity = map[string]spillway.Criticality{
		"uri:spiffe://example.org/frontend": spillway.CriticalPlus,
		"dns:batch.example.org":             spillway.SheddablePlus,
		"cn:cron":                           spillway.Critical,
	}
	for _, row := range []struct {
		name string
		cert *x509.Certificate
		want spillway.Criticality
	}{
		{"by URI", &x509.Certificate{URIs: []*url.URL{must(url.Parse("spiffe://example.org/frontend"))}, DNSNames: []string{"batch.example.org"}}, spillway.CriticalPlus},
		{"by DNS name", &x509.Certificate{DNSNames: []string{"batch.example.org"}}, spillway.SheddablePlus},
		{"by common name", &x509.Certificate{Subject: pkix.Name{CommonName: "cron"}}, spillway.Critical},
		{"a stranger", &x509.Certificate{Subject: pkix.Name{CommonName: "mallory"}}, spillway.Sheddable},
		{"without a certificate", nil, spillway.Sheddable},
	} {
		t.Run(row.name, func(t *testing.T) {
			var got spillway.Criticality
			site := open(t, &service{unary: func(ctx context.Context) error { got = spillway.CriticalityFrom(ctx); return nil }},
				append(mustServer(t, gates, ServerConfig{}).Options(), grpc.Creds(credentials.NewTLS(&tls.Config{
					MinVersion:   tls.VersionTLS13,
					Certificates: []tls.Certificate{ca.issue(&x509.Certificate{DNSNames: []string{"server"}})},
					ClientAuth:   tls.VerifyClientCertIfGiven, ClientCAs: ca.pool,
				})))...)
			config := &tls.Config{MinVersion: tls.VersionTLS13, ServerName: "server", RootCAs: ca.pool}
			if row.cert != nil {
				config.Certificates = []tls.Certificate{ca.issue(row.cert)}
			}
			cc := site.dial(append(mustClient(t, ClientConfig{}).DialOptions(), grpc.WithTransportCredentials(credentials.NewTLS(config)))...)
			if err := call(spillway.WithCriticality(t.Context(), spillway.CriticalPlus), cc); err != nil {
				t.Fatal(err)
			}
			if got != row.want {
				t.Errorf("admitted as %v, want %v", got, row.want)
			}
		})
	}
	if id := CertifiedPeer(t.Context()); id != "" {
		t.Errorf("without a peer: %q", id)
	}
}

// authority issues certificates for a test.
type authority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, key: must(ecdsa.GenerateKey(elliptic.P256(), crand.Reader)), pool: x509.NewCertPool()}
	a.cert = &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, Subject: pkix.Name{CommonName: "test"}}
	der := must(x509.CreateCertificate(crand.Reader, a.cert, a.cert, &a.key.PublicKey, a.key))
	a.cert = must(x509.ParseCertificate(der))
	a.pool.AddCert(a.cert)
	return a
}

func (a *authority) issue(c *x509.Certificate) tls.Certificate {
	key := must(ecdsa.GenerateKey(elliptic.P256(), crand.Reader))
	c.SerialNumber, c.NotAfter = big.NewInt(2), time.Now().Add(time.Hour)
	der := must(x509.CreateCertificate(crand.Reader, c, a.cert, &key.PublicKey, a.key))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// judged returns what is known of a call that arrives now.
func judged(s *Server, ctx context.Context) (a arrival) {
	s.judge(ctx, time.Now(), methodUnary, &a)
	return a
}

// TestCaller checks the attributes of a caller that decide on exemptions from the rate limit.
func TestCaller(t *testing.T) {
	s := mustServer(t, ingress.Config{RateLimit: ratelimit.Config{Rate: 1}}, ServerConfig{Identity: func(context.Context) string { return "me" }})
	md := metadata.NewIncomingContext(t.Context(), metadata.Pairs("user-agent", "app/1.0"))
	for _, addr := range []net.Addr{&net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 7}, addrText("10.0.0.1:7")} {
		c := judged(s, peer.NewContext(md, &peer.Peer{Addr: addr})).Caller
		if c.Identity != "me" || c.Application != "app/1.0" || c.Addr.String() != "10.0.0.1" {
			t.Errorf("%+v", c)
		}
	}
	if c := judged(s, peer.NewContext(md, &peer.Peer{Addr: addrText("bufconn")})).Caller; c.Addr.IsValid() {
		t.Errorf("%+v", c)
	}
}

type addrText string

func (a addrText) Network() string { return "test" }
func (a addrText) String() string  { return string(a) }

// TestIncoming expects the metadata found as they are, and no copy of them.
func TestIncoming(t *testing.T) {
	md := metadata.Pairs("a", "b")
	got := incomingOf(metadata.NewIncomingContext(t.Context(), md))
	if incomingKey == nil || len(got) != 1 {
		t.Fatalf("%v by the key %v", got, incomingKey)
	}
	md["c"] = []string{"d"}
	if len(got) != 2 {
		t.Error("they were copied")
	}
	if got := incomingOf(t.Context()); got != nil {
		t.Errorf("%v of a context without", got)
	}
}

// FuzzClaims expects no claim to break anything, nor to gain a caller at an edge more
// than it would have without.
func FuzzClaims(f *testing.F) {
	f.Add("CRITICAL_PLUS", "criticality=CRITICAL_PLUS", "3")
	f.Add("", ",;=criticality", "99999999999999999999")
	s, err := NewServer(ServerConfig{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.Close() })
	f.Fuzz(func(t *testing.T, label, baggage, attempts string) {
		md := metadata.MD{keyCriticality: {label}, keyBaggage: {baggage, baggage}, keyAttempts: {attempts, "1"}}
		call := judged(s, metadata.NewIncomingContext(context.Background(), md)).Call
		if call.Criticality > spillway.Critical || !call.Criticality.Valid() || call.Attempt != 0 {
			t.Errorf("%q, %q: %+v", label, baggage, call)
		}
		if n := claims.Attempt(md[keyAttempts]); n < 1 {
			t.Errorf("attempt %d of %q and 1", n, attempts)
		}
	})
}

// The deadline of a call is the earlier one of the client's and the server's own, and at most
// Trust.MaxTimeout away.
func TestDeadlineOfACall(t *testing.T) {
	now := time.Now()
	for name, row := range map[string]struct{ own, claimed, want time.Duration }{ // from now; 0: none
		"none":                       {},
		"the client's":               {claimed: time.Minute, want: time.Minute},
		"the client's is over":       {claimed: -time.Second, want: -time.Second},
		"the client's is too far":    {claimed: 2 * time.Hour, want: time.Hour},
		"the server's":               {own: time.Minute, want: time.Minute},
		"the server's is earlier":    {own: time.Second, claimed: time.Minute, want: time.Second},
		"the client's is earlier":    {own: time.Minute, claimed: time.Second, want: time.Second},
		"both are too far":           {own: 3 * time.Hour, claimed: 2 * time.Hour, want: time.Hour},
		"the server's has no bounds": {own: 3 * time.Hour, want: 3 * time.Hour},
	} {
		s := mustServer(t, ingress.Config{}, ServerConfig{Classify: func(context.Context, string) (call spillway.Call) {
			if row.own != 0 {
				call.Deadline = now.Add(row.own)
			}
			return call
		}})
		ctx, cancel := t.Context(), context.CancelFunc(func() {})
		if row.claimed != 0 {
			ctx, cancel = context.WithDeadline(ctx, now.Add(row.claimed))
		}
		var a arrival
		s.judge(ctx, now, methodUnary, &a)
		cancel()
		if got := a.Call.Deadline; got.IsZero() != (row.want == 0) || row.want != 0 && !got.Equal(now.Add(row.want)) {
			t.Errorf("%s: %v from now, want %v", name, got.Sub(now), row.want)
		}
	}
}
