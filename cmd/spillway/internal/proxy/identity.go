package proxy

import "crypto/x509"

// identityOf returns the name in a certificate, as package spillhttp does.
func identityOf(c *x509.Certificate) string {
	switch {
	case len(c.URIs) > 0:
		return c.URIs[0].String()
	case len(c.DNSNames) > 0:
		return c.DNSNames[0]
	default:
		return c.Subject.CommonName
	}
}
