package keys

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// write writes a file and returns its name.
func write(t *testing.T, name string, text []byte) string {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// made writes a certificate and its key.
func made(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, "cert.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		write(t, "key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
}

func TestServer(t *testing.T) {
	if c, err := Server(nil); c != nil || err != nil {
		t.Errorf("without TLS: %v, %v", c, err)
	}
	cert, key := made(t)
	for _, row := range []struct {
		given config.ServerTLS
		want  tls.ClientAuthType
	}{
		{config.ServerTLS{Certificate: cert, Key: key, Optional: true}, tls.NoClientCert},
		{config.ServerTLS{Certificate: cert, Key: key, ClientCA: cert}, tls.RequireAndVerifyClientCert},
		{config.ServerTLS{Certificate: cert, Key: key, ClientCA: cert, Optional: true}, tls.VerifyClientCertIfGiven},
	} {
		c, err := Server(&row.given, "h2")
		if err != nil {
			t.Fatal(err)
		}
		if c.ClientAuth != row.want || (c.ClientCAs == nil) != (row.given.ClientCA == "") || len(c.Certificates) != 1 || c.NextProtos[0] != "h2" {
			t.Errorf("%+v: got %+v", row.given, c)
		}
	}
}

func TestClient(t *testing.T) {
	if s, err := Client(nil); s.Config != nil || err != nil {
		t.Errorf("without TLS: %v, %v", s, err)
	}
	cert, key := made(t)
	plain, err := Client(&config.ClientTLS{ServerName: "db"})
	if err != nil || plain.Config.ServerName != "db" || plain.Config.RootCAs != nil {
		t.Errorf("got %+v, %v", plain, err)
	}
	s, err := Client(&config.ClientTLS{CA: cert, Certificate: cert, Key: key})
	if err != nil || s.Config.RootCAs == nil || len(s.Config.Certificates) != 1 {
		t.Errorf("got %+v, %v", s, err)
	}
	for _, file := range []string{cert, key} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(s.Text, string(text)) {
			t.Errorf("a change of %s is not noticed", file)
		}
	}
}

// TestErrors checks that errors name their files.
func TestErrors(t *testing.T) {
	cert, key := made(t)
	_, stranger := made(t)
	empty := write(t, "empty.pem", nil)
	gone := filepath.Join(t.TempDir(), "gone.pem")
	for _, row := range []struct{ cert, key, wrong string }{
		{gone, key, gone},
		{cert, gone, gone},
		{empty, key, empty},
		{cert, empty, empty},
		{cert, stranger, stranger},
	} {
		_, server := Server(&config.ServerTLS{Certificate: row.cert, Key: row.key})
		_, client := Client(&config.ClientTLS{Certificate: row.cert, Key: row.key})
		for _, err := range []error{server, client} {
			if err == nil || !strings.Contains(err.Error(), row.wrong) {
				t.Errorf("%+v: got %v", row, err)
			}
		}
	}
	_, server := Server(&config.ServerTLS{Certificate: cert, Key: key, ClientCA: empty})
	_, client := Client(&config.ClientTLS{CA: empty})
	for _, err := range []error{server, client} {
		if err == nil || !strings.Contains(err.Error(), "ca: "+empty) {
			t.Errorf("no certificate: %v", err)
		}
	}
}
