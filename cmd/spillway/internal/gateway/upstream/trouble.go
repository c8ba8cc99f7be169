package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/textproto"
	"strings"
	"syscall"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/decisions"
	"github.com/seed90641741/spillway/retry"
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

// FailureOf says why a request got no answer, and why it was not sent again. It has nothing that an
// endpoint has sent, which may be a secret: more people read an access log than an answer.
func FailureOf(err error) string {
	if stopped, ok := errors.AsType[*retry.Error](err); ok {
		return withoutAnswer(stopped.Err) + "; " + withoutAnswer(stopped.Why)
	}
	return withoutAnswer(err)
}

// withoutAnswer returns the text of an error without what the endpoint has sent: net/http quotes
// that, except in errors of type textproto.ProtocolError.
func withoutAnswer(err error) string {
	_, network := errors.AsType[*net.OpError](err)
	malformed := textproto.ProtocolError("")
	switch {
	case errors.Is(err, spillway.ErrRejected), network:
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer before the deadline"
	case errors.As(err, &malformed):
		return "the answer is malformed"
	case untrusted(err):
		return TroubleOf(err)
	}
	text, _, _ := strings.Cut(err.Error(), `"`)
	return decisions.Clean(strings.TrimRight(text, " :=,"))
}
