package mongoproxy

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/keys"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/mongoproxy/wire"
	"github.com/seed90641741/spillway/internal/mongowire"
	"github.com/seed90641741/spillway/internal/race"
)

// certificate writes one for 127.0.0.1 and its key into files.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, b []byte) string {
		name = filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", secret)
}

// dialTLS is dial by TLS.
func (f *front) dialTLS(cert string) *peer {
	f.tb.Helper()
	trusted, err := keys.Client(&config.ClientTLS{CA: cert, ServerName: "127.0.0.1"})
	if err != nil {
		f.tb.Fatal(err)
	}
	plain := f.dial()
	c := tls.Client(plain.Conn, trusted.Config)
	return &peer{c, f.tb, bufio.NewReader(c)}
}

// TestTLS terminates the client's TLS, and uses TLS to the server.
func TestTLS(t *testing.T) {
	cert, key := certificate(t)
	backend := newServer(t, fine)
	inside := newFront(t, func(m *config.Mongo) { m.TLS = &config.ServerTLS{Certificate: cert, Key: key} }, backend)
	f := newFront(t, func(m *config.Mongo) {
		m.TLS = &config.ServerTLS{Certificate: cert, Key: key}
		m.Endpoints = []string{inside.addr}
		m.UpstreamTLS = &config.ClientTLS{CA: cert}
	})
	p := f.dialTLS(cert)
	p.ask(hello(true))
	for i := range int32(3) {
		if !isOK(p.ask(msg(i, 0, ping))) {
			t.Fatal("no answer")
		}
	}
	plain := f.dial()
	plain.send(hello(true))
	_, _ = io.Copy(io.Discard, plain) // an alert
	f.closed(NotTLS)
}

// TestTLSPassesThrough: without a certificate the listener relays TLS, if allowed.
func TestTLSPassesThrough(t *testing.T) {
	cert, key := certificate(t)
	inside := newFront(t, func(m *config.Mongo) { m.TLS = &config.ServerTLS{Certificate: cert, Key: key} }, newServer(t, fine))
	f := newFront(t, func(m *config.Mongo) {
		m.TLSPassthrough = true
		m.Endpoints = []string{inside.addr}
	})
	p := f.dialTLS(cert)
	p.ask(hello(true))
	if !isOK(p.ask(msg(2, 0, ping))) {
		t.Fatal("no answer")
	}
	if err := f.drain(); err != nil {
		t.Error(err)
	}
	p.ended()
}

// TestClasses checks the class of a command by its client and its database.
func TestClasses(t *testing.T) {
	f := newFront(t, func(m *config.Mongo) {
		m.Classes = []config.MongoClass{
			{Databases: []string{"logs"}, Criticality: "SHEDDABLE", Customer: "database"},
			{Users: []string{"ann"}, Applications: []string{"shop-"}, Criticality: "CRITICAL_PLUS", Customer: "user"},
			{Applications: []string{"batch"}, Criticality: "SHEDDABLE_PLUS", Customer: "application"},
		}
	}, newServer(t, fine))
	var l *listener
	for _, l = range f.listeners {
		break
	}
	for _, test := range []struct {
		application, user, database string
		class, customer             string
	}{
		{"shop-web", "ann", "shop", "CRITICAL_PLUS", "ann"},
		{"shop-web", "bob", "shop", "CRITICAL", ""},
		{"web", "ann", "shop", "CRITICAL", ""},
		{"batch-night", "ann", "shop", "SHEDDABLE_PLUS", "batch-night"},
		{"batch-night", "ann", "logs", "SHEDDABLE", "logs"},
	} {
		c := &conn{listener: l, settings: l.settings.Load(), client: wire.Handshake{Application: test.application}, who: identity{user: test.user}}
		cmd := &wire.Command{Database: []byte(test.database)}
		got := c.call(time.Now(), cmd)
		if got.Criticality.String() != test.class || got.Customer != test.customer || got.Key != "m" {
			t.Errorf("%+v: got %+v", test, got)
		}
		// A body that is too long to find $db counts for the same database.
		if again := c.call(time.Now(), new(wire.Command)); again.Customer != test.customer {
			t.Errorf("%+v: then %+v", test, again)
		}
	}
}

// TestClaimants checks the users that clients name.
func TestClaimants(t *testing.T) {
	start := func(mechanism, payload string) []byte {
		return doc(func(b *mongowire.Builder) {
			b.Int("saslStart", 1)
			b.Text("mechanism", mechanism)
			b.Value("payload", mongowire.Value{Kind: mongowire.KindBinary, Data: append(append(u32(uint32(len(payload))), 0), payload...)})
		})
	}
	text := func(mechanism, payload string) []byte { // which servers take, too
		return doc(func(b *mongowire.Builder) {
			b.Int("saslStart", 1)
			b.Text("mechanism", mechanism)
			b.Text("payload", base64.StdEncoding.EncodeToString([]byte(payload)))
		})
	}
	for _, test := range []struct {
		doc  []byte
		want string
	}{
		{start("SCRAM-SHA-256", "n,,n=ann,r=xyz"), "ann"},
		{start("SCRAM-SHA-1", "n,,n=a=2Cb=3Dc,r=xyz"), "a,b=c"},
		{start("PLAIN", "\x00bob\x00secret"), "bob"},
		{start("PLAIN", "nothing"), ""},
		{text("SCRAM-SHA-256", "n,,n=ann,r=xyz"), "ann"},
		{text("PLAIN", "\x00bob\x00secret"), "bob"},
		{start("MONGODB-OIDC", "x"), ""},
		{doc(func(b *mongowire.Builder) {
			b.Int("saslStart", 1)
			b.Text("mechanism", "MONGODB-AWS")
			b.Text("user", "root")
		}), ""},
		{doc(func(b *mongowire.Builder) { b.Int("authenticate", 1); b.Text("user", "CN=ann") }), "CN=ann"},
		{doc(func(b *mongowire.Builder) { // another user than the one that the server hears of
			b.Text("user", "root")
			for key, v := range mongowire.Elements(start("SCRAM-SHA-256", "n,,n=ann,r=xyz")) {
				b.Value(string(key), v)
			}
		}), "ann"},
		{nil, ""},
	} {
		if got := wire.Claimant(test.doc); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

// TestReadAllocatesNothing: parsing a command does not allocate.
func TestReadAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	var c wire.Command
	fr := wire.Frame{Header: mongowire.ParseHeader(find), Head: find}
	answer := wire.Frame{Header: mongowire.ParseHeader(foundMessage), Head: foundMessage}
	if n := testing.AllocsPerRun(100, func() {
		if c.Read(fr, nil) != nil {
			t.Error("malformed")
		}
		if v, err := wire.Judge(answer, nil, false); err != nil || v.Failed {
			t.Error("malformed")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
