// Package keys reads the certificates, keys and tokens that a configuration names.
package keys

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/internal/admin/access"
)

// Server reads the TLS configuration of a listener; nil without TLS. It offers protocols by
// ALPN.
func Server(c *config.ServerTLS, protocols ...string) (*tls.Config, error) {
	if c == nil {
		return nil, nil //nolint:nilnil // no TLS is none
	}
	own, _, err := pair(c.Certificate, c.Key)
	if err != nil {
		return nil, err
	}
	t := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{own}, NextProtos: protocols}
	if c.ClientCA == "" {
		return t, nil
	}
	if t.ClientCAs, _, err = pool("client_ca", c.ClientCA); err != nil {
		return nil, err
	}
	t.ClientAuth = tls.RequireAndVerifyClientCert
	if c.Optional {
		t.ClientAuth = tls.VerifyClientCertIfGiven
	}
	return t, nil
}

// Secrets are the TLS settings for connections to servers.
type Secrets struct {
	Config *tls.Config // nil: in the clear
	Text   string      // of all files: by it a change is noticed
}

// Client reads the TLS settings for connections to servers.
func Client(c *config.ClientTLS) (s Secrets, err error) {
	if c == nil {
		return s, nil
	}
	s.Config = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName}
	if c.CA != "" {
		if s.Config.RootCAs, s.Text, err = pool("ca", c.CA); err != nil {
			return s, err
		}
	}
	if c.Certificate == "" {
		return s, nil
	}
	own, text, err := pair(c.Certificate, c.Key)
	if err != nil {
		return s, err
	}
	s.Config.Certificates = []tls.Certificate{own}
	s.Text += text
	return s, nil
}

// pair reads a certificate and its key, and returns the text of both files, too.
func pair(certificate, key string) (own tls.Certificate, text string, err error) {
	public, err := os.ReadFile(certificate)
	if err != nil {
		return own, "", fmt.Errorf("tls: %w", err)
	}
	private, err := os.ReadFile(key)
	if err != nil {
		return own, "", fmt.Errorf("tls: %w", err)
	}
	if own, err = tls.X509KeyPair(public, private); err != nil {
		return own, "", fmt.Errorf("%s, %s: %w", certificate, key, err) // which says tls
	}
	return own, string(public) + string(private), nil
}

// pool reads CA certificates, and returns the text of the file, too.
func pool(field, name string) (*x509.CertPool, string, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, "", fmt.Errorf("tls: %w", err)
	}
	all := x509.NewCertPool()
	if !all.AppendCertsFromPEM(text) {
		return nil, "", fmt.Errorf("tls: %s: %s has no certificate", field, name)
	}
	return all, string(text), nil
}

// Admin returns an error for each file of the address for operators that cannot be used.
func Admin(c *config.Admin) (errs []error) {
	note := func(field string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("admin %s: %w", field, err))
		}
	}
	for _, f := range [...]struct{ field, name string }{{"token_file", c.TokenFile}, {"read_token_file", c.ReadToken}} {
		if f.name != "" {
			_, err := access.File(f.name)()
			note(f.field, err)
		}
	}
	_, err := Server(c.TLS)
	note("tls", err)
	return errs
}
