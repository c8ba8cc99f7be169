package importer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// testPair returns a certificate and its key, in PEM.
func testPair(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	public, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: public})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// TestInlineCertificates: what a document contains goes to files, or the import fails and says why.
func TestInlineCertificates(t *testing.T) {
	certificate, key := testPair(t)
	_, otherKey := testPair(t)
	quoted := func(s string) string { text, _ := json.Marshal(s); return string(text) }
	inline := func(s string) string { return `{"inline_string": ` + quoted(s) + `}` }
	context := func(chain, private string) string {
		return edge(`"transport_socket": {"name": "tls", "typed_config": {"@type": "x.DownstreamTlsContext",
			"common_tls_context": {"tls_certificates": [{"certificate_chain": `+chain+`, "private_key": `+private+`}],
			"validation_context": {"trusted_ca": `+inline(certificate)+`}}}}`, "", "", "")
	}
	environment := func(name string) (string, bool) { return key, name == "KEY" }
	for name, row := range map[string]struct {
		certificate, key string
		problem          string
		files            []string // of the directory
	}{
		"strings":                 {inline(certificate), inline(key), "", []string{"listener-l-certificate.pem", "listener-l-key.pem"}},
		"camel case":              {`{"inlineString": ` + quoted(certificate) + `}`, inline(key), "", []string{"listener-l-certificate.pem", "listener-l-key.pem"}},
		"bytes":                   {`{"inline_bytes": "` + base64.StdEncoding.EncodeToString([]byte(certificate)) + `"}`, inline(key), "", []string{"listener-l-certificate.pem", "listener-l-key.pem"}},
		"bytes, other alphabet":   {`{"inlineBytes": "` + base64.RawURLEncoding.EncodeToString([]byte(certificate)) + `"}`, inline(key), "", []string{"listener-l-certificate.pem", "listener-l-key.pem"}},
		"environment":             {inline(certificate), `{"environment_variable": "KEY"}`, "", []string{"listener-l-certificate.pem", "listener-l-key.pem"}},
		"variable not set":        {inline(certificate), `{"environment_variable": "OTHER"}`, `"OTHER" of Envoy, which is not set here`, nil},
		"certificate in a file":   {`{"filename": "/c.pem"}`, inline(key), "", []string{"listener-l-ca.pem", "listener-l-key.pem"}},
		"key in a file":           {inline(certificate), `{"filename": "/k.pem"}`, "", []string{"listener-l-certificate.pem"}},
		"key of another":          {inline(certificate), inline(otherKey), "private key does not match", nil},
		"no certificate":          {inline("x"), inline(key), "cannot be used", nil},
		"no certificate, no file": {inline("x"), `{"filename": "/k.pem"}`, "cannot be read as PEM", nil},
		"no key":                  {`{"filename": "/c.pem"}`, inline("x"), "its key is not in PEM", nil},
		"no base64":               {`{"inline_bytes": "*"}`, inline(key), "cannot be used", nil},
		"nothing":                 {`{}`, inline(key), "its certificate is not given", nil},
	} {
		t.Run(name, func(t *testing.T) {
			text := context(row.certificate, row.key)
			r, err := Envoy([]Document{{Name: "x", Text: []byte(text)}}, Options{Certificates: "/d", Environment: environment})
			if err != nil {
				t.Fatal(err)
			}
			accounted(t, []byte(text), r, err)
			shown := fmt.Sprintf("%+v", r)
			asJSON, err := json.Marshal(r)
			if secret := key[100:120]; err != nil || strings.Contains(shown, secret) || strings.Contains(string(asJSON), secret) {
				t.Errorf("the key is shown, or %v", err)
			}
			if row.problem != "" {
				if r.Err() == nil || !strings.Contains(shown, row.problem) || len(r.Files) != 0 {
					t.Errorf("%v, %d files, want %q in %s", r.Err(), len(r.Files), row.problem, shown)
				}
				return
			}
			got := make(map[string]File)
			var names []string
			for _, f := range r.Files {
				got[f.Name] = f
				names = append(names, filepath.Base(f.Name))
			}
			slices.Sort(names)
			if r.Err() != nil || !slices.Equal(names, row.files) {
				t.Fatalf("%v: files %q, want %q", r.Err(), names, row.files)
			}
			l := r.Config.Listeners[0].TLS
			if f, written := got[l.Key]; written && (!f.Private || string(f.Text) != key) || !written && l.Key != "/k.pem" {
				t.Errorf("the key is in %s: %v", l.Key, written)
			}
			if f, written := got[l.Certificate]; written && (f.Private || string(f.Text) != certificate) || !written && l.Certificate != "/c.pem" {
				t.Errorf("the certificate is in %s: %v", l.Certificate, written)
			}
			if l.ClientCA == "" || !l.Optional {
				t.Errorf("clients: %+v", l)
			}
			without, err := Envoy([]Document{{Name: "x", Text: []byte(text)}}, Options{})
			if err != nil || !strings.Contains(fmt.Sprint(without.Err()), "--certificates DIR") {
				t.Errorf("without a directory: %v, %v", err, without.Err())
			}
		})
	}
}

// TestNamesOfInlineFiles: owners whose names differ in what file names cannot have get files of their own, and
// a listener that is not imported leaves none.
func TestNamesOfInlineFiles(t *testing.T) {
	certificate, key := testPair(t)
	otherCertificate, otherKey := testPair(t)
	pair := func(certificate, key string) string {
		text, err := json.Marshal([]any{map[string]any{
			"certificate_chain": map[string]string{"inline_string": certificate}, "private_key": map[string]string{"inline_string": key},
		}})
		if err != nil {
			t.Fatal(err)
		}
		return `"common_tls_context": {"tls_certificates": ` + string(text) + `}`
	}
	listener := func(name, port, tls string) string {
		return fmt.Sprintf(`{"name": %q, "address": {"socket_address": {"address": "127.0.0.1", "port_value": %s}}, "filter_chains": [{
			"transport_socket": {"name": "tls", "typed_config": {"@type": "x.DownstreamTlsContext", %s}},
			"filters": [{"typed_config": {"@type": "x.HttpConnectionManager", "route_config": {"virtual_hosts": []}}}]}]}`, name, port, tls)
	}
	text := "[" + strings.Join([]string{
		listener("a/../b", "1", pair(certificate, key)), listener("a:..:B", "2", pair(otherCertificate, otherKey)),
		listener("same", "3", pair(certificate, key)),
		listener("lost", "4", `"require_client_certificate": true, `+pair(otherCertificate, key)),
		`{"name": "c", "lb_policy": "ROUND_ROBIN"}`,
	}, ",") + "]"
	r, err := Envoy([]Document{{Name: "x", Text: []byte(text)}}, Options{Certificates: "/d"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range r.Files {
		names = append(names, f.Name)
	}
	want := []string{"/d/listener-a-..-b-certificate.pem", "/d/listener-a-..-b-key.pem", "/d/listener-a-..-B-certificate-2.pem", "/d/listener-a-..-B-key-2.pem"}
	if !slices.Equal(names, want) {
		t.Errorf("files %q, want %q", names, want)
	}
}
