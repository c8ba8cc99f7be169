//go:build unix

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// selfSigned writes a certificate, which is its own authority, and its key.
func selfSigned(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "edge"}, DNSNames: []string{"shop.example.com", "site.internal"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, text := range map[string][]byte{
		"cert.pem": certificate, "clients.pem": certificate, "ca.pem": certificate,
		"key.pem": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

var (
	importedListener = regexp.MustCompile(`address: 127\.0\.0\.1:\d+`)
	importedEndpoint = regexp.MustCompile(`- 127\.0\.0\.1:\d+`)
)

// imported imports a file, with the names of its files in dir and one upstream, and starts
// a proxy with the result.
func imported(t *testing.T, kind, name, dir, upstream string) *running {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("internal/gateway/importer/testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	input := filepath.Join(dir, name)
	if err := os.WriteFile(input, []byte(strings.ReplaceAll(string(text), "/etc/edge/", dir+"/")), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, "import", kind, input)
	if status := r.status(t); status != exitOK {
		t.Fatalf("status %d: %s", status, r.stderr.String())
	}
	out := importedEndpoint.ReplaceAllString(importedListener.ReplaceAllString(r.stdout.String(), "address: 127.0.0.1:0"), "- "+upstream)
	out = strings.ReplaceAll(out, "listeners:\n  - address", "listeners:\n  - name: main\n    address")
	file := filepath.Join(dir, "spillway.yaml")
	if err := os.WriteFile(file, []byte(out+"admin: {address: \"off\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return start(t, "proxy", "--config", file)
}

// TestImportedServes starts the proxy with what was imported from examples.
func TestImportedServes(t *testing.T) {
	upstream := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			w.Header().Set("Trailer", "Grpc-Status")
			w.Header().Set("Content-Type", "application/grpc")
			w.WriteHeader(http.StatusOK)
			w.Header().Set("Grpc-Status", "0")
		}
	}))
	upstream.Config.Protocols = new(http.Protocols)
	upstream.Config.Protocols.SetHTTP1(true)
	upstream.Config.Protocols.SetUnencryptedHTTP2(true)
	upstream.Start()
	defer upstream.Close()
	for _, example := range []struct{ kind, name string }{{"envoy", "front-proxy.yaml"}, {"envoy", "outliers.yaml"}, {"grpc", "grpc-retry.json"}} {
		t.Run(example.name, func(t *testing.T) {
			p := imported(t, example.kind, example.name, t.TempDir(), upstream.Listener.Addr().String())
			client := &http.Transport{Protocols: new(http.Protocols)}
			defer client.CloseIdleConnections()
			client.Protocols.SetHTTP1(example.kind == "envoy")
			client.Protocols.SetUnencryptedHTTP2(example.kind == "grpc")
			req := httptest.NewRequest(http.MethodPost, "http://"+addressOf(t, p)+"/shop.Echo/Say", http.NoBody)
			req.RequestURI = ""
			if example.kind == "grpc" {
				req.Header.Set("Content-Type", "application/grpc")
			}
			if resp, err := client.RoundTrip(req); err != nil || resp.StatusCode != http.StatusOK {
				t.Errorf("%v, %v\n%s", resp, err, p.stderr.String())
			} else {
				resp.Body.Close()
			}
		})
	}
}

// TestImportedTLS: with the example of an edge, clients need a certificate, and the other
// listener serves nothing.
func TestImportedTLS(t *testing.T) {
	dir := t.TempDir()
	selfSigned(t, dir)
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	upstream := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	upstream.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	upstream.StartTLS()
	defer upstream.Close()
	p := imported(t, "envoy", "tls-edge.yaml", dir, upstream.Listener.Addr().String())
	p.waitFor(t, " mode=")
	addresses := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindAllString(p.stderr.String(), -1)
	pool := x509.NewCertPool()
	pool.AddCert(pair.Leaf)
	get := func(scheme, address string, own ...tls.Certificate) (int, error) {
		client := &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "shop.example.com", Certificates: own},
			DialContext:     new(net.Dialer).DialContext,
		}
		defer client.CloseIdleConnections()
		req := httptest.NewRequest(http.MethodGet, scheme+"://"+address+"/", http.NoBody)
		req.RequestURI, req.Host = "", "shop.example.com"
		resp, err := client.RoundTrip(req)
		if err != nil {
			return 0, err
		}
		return resp.StatusCode, resp.Body.Close()
	}
	served, plain := 0, 0
	for _, address := range addresses {
		if status, err := get("https", address, pair); err == nil && status == http.StatusOK {
			served++
			if status, err := get("https", address); err == nil {
				t.Errorf("a client without a certificate got %d", status)
			}
		}
		if status, err := get("http", address); err == nil && status == http.StatusOK {
			plain++
		}
	}
	if served != 1 || plain != 0 {
		t.Errorf("%d listeners served over TLS, %d without; want 1, 0\n%s", served, plain, p.stderr.String())
	}
}
