package upstream

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"syscall"
)

// untrusted reports whether an endpoint did not prove its identity. Nothing was sent to it.
func untrusted(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return ok
}

// TroubleOf returns a short reason why an endpoint could not be connected to. It has no
// addresses, so that endpoints with the same problem have the same text.
func TroubleOf(err error) string {
	invalid, isInvalid := errors.AsType[x509.CertificateInvalidError](err)
	name, isName := errors.AsType[*net.DNSError](err)
	timeout, isNet := errors.AsType[net.Error](err)
	switch {
	case isInvalid && invalid.Reason == x509.Expired:
		return "its certificate has expired"
	case untrusted(err):
		return "its certificate is not trusted"
	case isName:
		return "its name cannot be resolved: " + name.Err
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case isNet && timeout.Timeout():
		return "connection timed out"
	default:
		return "cannot be connected to"
	}
}
