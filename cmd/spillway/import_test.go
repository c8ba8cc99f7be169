//go:build unix

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
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

// exampleIn writes an example to dir, with the files of dir in place of its own, and the text of the certificate
// and key that are there.
func exampleIn(t *testing.T, name, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("internal/gateway/importer/testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	pair := func(name string) string {
		text, _ := os.ReadFile(filepath.Join(dir, name)) // most examples need none
		return string(text)
	}
	certificate, key := pair("cert.pem"), pair("key.pem")
	input := filepath.Join(dir, name)
	whole := strings.NewReplacer("/etc/edge/", dir+"/", `"CERTIFICATE"`, strconv.Quote(certificate), `"KEY"`, strconv.Quote(key),
		"BYTES", base64.StdEncoding.EncodeToString([]byte(certificate))).Replace(string(text))
	if err := os.WriteFile(input, []byte(whole), 0o600); err != nil {
		t.Fatal(err)
	}
	return input
}

// imported imports a file, with the names of its files in dir and one upstream, and starts
// a proxy with the result.
func imported(t *testing.T, kind, name, dir, upstream string, flags ...string) *running {
	t.Helper()
	r := start(t, append([]string{"import", kind, exampleIn(t, name, dir)}, flags...)...)
	if status := r.status(t); status != exitOK {
		t.Fatalf("status %d: %s", status, r.stderr.String())
	}
	out := importedEndpoint.ReplaceAllString(importedListener.ReplaceAllString(r.stdout.String(), "address: 127.0.0.1:0"), "- "+upstream)
	out = regexp.MustCompile("(- "+upstream+"\n\\s+)+- "+upstream).ReplaceAllString(out, "- "+upstream) // an endpoint may be there once only
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
		return getVerified(scheme, address, pool, own...)
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

// TestImportedInlineServes: of examples that contain their certificates, the proxy serves TLS with them.
func TestImportedInlineServes(t *testing.T) {
	dir := t.TempDir()
	selfSigned(t, dir)
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(filepath.Join(dir, "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("SHOP_TLS_KEY", string(key))
	pool := x509.NewCertPool()
	pool.AddCert(pair.Leaf)
	for _, example := range []struct {
		name           string
		upstream       *tls.Config
		ready          string // what the log says when all listeners are open
		secure, plain  int    // listeners
		mustHaveClient bool
	}{
		{"inline-edge.yaml", nil, "listener=edge address=", 1, 1, false},
		{"inline-single.yaml", nil, " mode=", 1, 0, false},
		{"inline-both.yaml", &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}, " mode=", 1, 0, true},
	} {
		t.Run(example.name, func(t *testing.T) {
			upstream := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			if upstream.TLS = example.upstream; upstream.TLS != nil {
				upstream.StartTLS()
			} else {
				upstream.Start()
			}
			defer upstream.Close()
			into := filepath.Join(dir, example.name+".d")
			p := imported(t, "envoy", example.name, dir, upstream.Listener.Addr().String(), "--certificates", into)
			p.waitFor(t, example.ready)
			secure, plain := 0, 0
			for _, address := range regexp.MustCompile(`127\.0\.0\.1:\d+`).FindAllString(p.stderr.String(), -1) {
				if status, err := getVerified("https", address, pool, pair); err == nil && status == http.StatusOK {
					secure++
					_, err := getVerified("https", address, pool)
					if rejected := err != nil; rejected != example.mustHaveClient {
						t.Errorf("a client without a certificate: %v", err)
					}
				}
				if status, err := getVerified("http", address, pool); err == nil && status == http.StatusOK {
					plain++
				}
			}
			if secure != example.secure || plain != example.plain {
				t.Errorf("%d listeners served over TLS, %d without; want %d, %d\n%s", secure, plain, example.secure, example.plain, p.stderr.String())
			}
		})
	}
}

// getVerified sends a request to an address, and verifies the certificate that is there.
func getVerified(scheme, address string, pool *x509.CertPool, own ...tls.Certificate) (int, error) {
	client := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "shop.example.com", Certificates: own},
		DialContext:     new(net.Dialer).DialContext,
	}
	defer client.CloseIdleConnections()
	req := httptest.NewRequest(http.MethodGet, scheme+"://"+address+"/cart", http.NoBody)
	req.RequestURI, req.Host = "", "shop.example.com"
	resp, err := client.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// TestImportCertificates: files are written with modes that fit them, and none is changed.
func TestImportCertificates(t *testing.T) {
	dir := t.TempDir()
	selfSigned(t, dir)
	input := exampleIn(t, "inline-edge.yaml", dir)
	into := filepath.Join(dir, "certificates")
	certificate, key := filepath.Join(into, "listener-edge-certificate.pem"), filepath.Join(into, "listener-edge-key.pem")
	original, err := os.ReadFile(filepath.Join(dir, "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	secret := string(original[100:120])
	run := func(into string, want int, words string) {
		t.Helper()
		for _, format := range []string{"text", "json"} {
			r := start(t, "import", "envoy", "--output", format, "--certificates", into, input)
			status, out := r.status(t), r.stdout.String()+r.stderr.String()
			if status != want || !strings.Contains(out, words) || strings.Contains(out, secret) {
				t.Errorf("%s: status %d, want %d and %q:\n%s", format, status, want, words, out)
			}
			if want == exitUsage && strings.Contains(out, "clusters:") {
				t.Errorf("%s: a configuration is written: %s", format, out)
			}
		}
	}
	mode := func(name string, want os.FileMode) {
		t.Helper()
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%v, %v, want mode %v", info, err, want)
		}
	}
	change := func(name string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	run(filepath.Join(dir, "no", "where"), exitUsage, "no such file or directory")
	run(input, exitUsage, "--certificates")
	run(into, exitOK, certificate) // it is made
	mode(into, 0o700)
	mode(key, 0o600)
	mode(certificate, 0o644)
	run(into, exitOK, key) // again, with the same files
	change("mode", os.Chmod(key, 0o640))
	run(into, exitUsage, "chmod 600")
	change("other key", os.WriteFile(key, []byte("other"), 0o600))
	change("no certificate", os.Remove(certificate))
	run(into, exitUsage, "is not overwritten")
	if _, err := os.Stat(certificate); err == nil {
		t.Error("a file is written although another one cannot be")
	}
	if text, err := os.ReadFile(key); err != nil || string(text) != "other" {
		t.Errorf("the other key is %q, %v", text, err)
	}
	target := filepath.Join(dir, "target")
	change("key", os.Remove(key))
	change("link", os.Symlink(target, key))
	run(into, exitUsage, "not a regular file")
	if _, err := os.Stat(target); err == nil {
		t.Error("a link is followed")
	}
}
