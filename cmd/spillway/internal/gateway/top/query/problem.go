package query

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/adminclient"
)

// A Problem is why a process has no figures, and what to do about it.
type Problem struct {
	Kind   string `json:"kind"` // one of the constants
	Text   string `json:"text"`
	Do     string `json:"do"`
	Detail string `json:"detail,omitempty"` // what the process itself says
}

// The kinds of problems.
const (
	Unreachable  = "unreachable"
	Timeout      = "timeout"
	Certificate  = "certificate"
	Unauthorized = "unauthorized" // 401
	Forbidden    = "forbidden"    // 403
	Unexpected   = "unexpected"   // something else answers
	TooLarge     = "too_large"
	Outdated     = "outdated" // a version without counts
	Stalled      = "stalled"  // it answers, and its figures do not change
)

// ofError returns the problem of a request without an answer.
func ofError(err error, timeout time.Duration) *Problem {
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	switch {
	case isTimeout(err):
		return &Problem{Kind: Timeout, Text: fmt.Sprintf("no complete answer within %v", timeout), Do: "Look at its host and its network."}
	case errors.Is(err, adminclient.ErrTooLarge):
		return &Problem{
			Kind: TooLarge, Text: fmt.Sprintf("its answer has more than %d MiB", maxBody>>20),
			Do: "Give its admin address; if it is one, report a bug.",
		}
	case errors.Is(err, http.ErrSchemeMismatch):
		return &Problem{Kind: Unexpected, Text: "it does not speak TLS", Do: "Write http:// before the address."}
	case errors.As(err, &unknown):
		return &Problem{Kind: Certificate, Text: "unknown certificate authority", Do: "Give its certificate with --ca-file."}
	case errors.As(err, &host):
		return &Problem{Kind: Certificate, Text: "its certificate is for another name", Do: "Ask it by a name in its certificate."}
	case isTLS(err):
		return &Problem{Kind: Certificate, Text: Plain(reason(err), maxName), Do: "Compare its certificate with --ca-file."}
	default:
		return &Problem{Kind: Unreachable, Text: Plain(reason(err), maxName), Do: "Start it, or correct the address."}
	}
}

// isTimeout reports whether an error is of a time that has passed.
func isTimeout(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
}

func isTLS(err error) bool {
	_, verification := errors.AsType[*tls.CertificateVerificationError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	return verification || alert
}

// reason returns the part of an error that does not repeat the address.
func reason(err error) string {
	if code, ok := errors.AsType[syscall.Errno](err); ok {
		return code.Error()
	}
	if lookup, ok := errors.AsType[*net.DNSError](err); ok {
		return "no address of " + lookup.Name + ": " + lookup.Err
	}
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err.Error()
}

// ofStatus returns the problem of an answer that is not 200. The text is the beginning of its body.
func ofStatus(status int, text string, hasToken bool) *Problem {
	switch {
	case status == http.StatusUnauthorized && hasToken:
		return &Problem{Kind: Unauthorized, Text: "it rejects the token", Do: "Give its own with --token-file."}
	case status == http.StatusUnauthorized:
		return &Problem{Kind: Unauthorized, Text: "it needs a token", Do: "Give its token with --token-file."}
	case status == http.StatusForbidden:
		return &Problem{Forbidden, "it answers 403", "Set its admin.read_token_file or admin.hosts.", text}
	case status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests:
		return &Problem{Unexpected, fmt.Sprintf("it answers %d", status), "Wait: it is asked again.", text}
	default:
		return notSpillway(fmt.Sprintf("it answers %d to %s", status, path))
	}
}

// firstLine returns the first line of a text, and at most 200 bytes.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return Plain(line, 200)
}

// notSpillway is the problem of an address at which something else answers.
func notSpillway(text string) *Problem {
	return &Problem{Kind: Unexpected, Text: text, Do: "Give its admin address, with https:// if it has a certificate; the default port is " + defaultPort + "."}
}
