package fault

import (
	"errors"
	"io"
	"net"
	"net/url"
	"slices"
	"syscall"
)

// system adds what errors of the standard library mean that implement no interface for it. The
// table says how far the attempt has come, which the throttle and the budget go by.
//
//	an address, a URL or a request that is malformed   never sent, RetryUnsafe: the next
//	                                                   attempt has the same
//	this process has no descriptor, port or memory     never sent, RetrySafe: the next attempt
//	for a connection, no route; DNS; a proxy           may find it; it is not the backend
//	the connection was not made: connection refused,   sent, Unprocessed: the backend was asked
//	dial timeout, TLS handshake timeout                for a connection, and got no request
//	a certificate that is not valid                    never sent, RetryUnsafe: this process
//	                                                   rejects the backend, not the reverse
//
// The texts of net/http are in [httpTexts]. Any other error of a connection, such as a reset or an
// unexpected end, is that of an attempt that was sent and not answered. It says nothing about what the backend has
// done: it stays RetryUnknown. err is not nil.
func (k *knowledge) system(err error) {
	if k.whole || k.local || k.safety {
		return
	}
	f, read := readHTTP(err)
	if !read {
		f = ofSystem(err, k.Failure.Timeout)
	}
	k.Safety, k.Party, k.Overload = f.Safety, max(k.Party, f.Party), k.Overload || f.Overload
	k.Unprocessed, k.Unanswered, k.Failure.Unsent = f.Unprocessed, f.Unanswered, f.Unsent
	if k.Canceled = f.Canceled; k.Canceled && k.Failure.Timeout { // the timer of an http.Client and not the caller
		k.Canceled, k.Unanswered = false, true
	}
}

var (
	// neverSent: the request or this process is wrong, and will be.
	neverSent = Failure{Unsent: true, Safety: RetryUnsafe}
	// unmade: this process had no connection to the backend.
	unmade = Failure{Unsent: true, Safety: RetrySafe}
)

// ofSystem returns what an error of packages net and syscall means. timeout says that it is one.
func ofSystem(err error, timeout bool) Failure {
	op, ok := errors.AsType[*net.OpError](err)
	errno, _ := errors.AsType[syscall.Errno](err)
	dial := ok && op.Op == "dial"
	switch {
	case malformed(err):
		return neverSent
	case ok && op.Op == "proxyconnect", unresolved(err), slices.Contains(lacking, errno), dial && slices.Contains(lackingInDial, errno):
		return unmade
	case dial, errno == syscall.ECONNREFUSED:
		return Failure{Unprocessed: true, Unanswered: true}
	case ok, timeout, errno != 0, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.ErrClosedPipe):
		return Failure{Unanswered: true} // the connection broke, or nothing came in time
	default:
		return Failure{}
	}
}

// unresolved reports whether err is that of a name server.
func unresolved(err error) bool {
	_, dns := errors.AsType[*net.DNSError](err)
	return dns
}

// lacking are the errors of a process or a host that lacks something for a connection, and
// lackingInDial are those that mean something else except in a dial.
var (
	lacking = []syscall.Errno{
		syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.EADDRINUSE, syscall.ENOBUFS, syscall.EAFNOSUPPORT, syscall.EPROTONOSUPPORT,
	}
	lackingInDial = []syscall.Errno{syscall.ENOMEM, syscall.EACCES, syscall.EPERM, syscall.ENETUNREACH, syscall.ENETDOWN}
)

// malformed reports whether err complains of an address or a URL.
func malformed(err error) bool {
	if e, ok := errors.AsType[*url.Error](err); ok && e.Op == "parse" {
		return true
	}
	if _, ok := errors.AsType[*net.AddrError](err); ok {
		return true
	}
	if _, ok := errors.AsType[net.UnknownNetworkError](err); ok {
		return true
	}
	_, ok := errors.AsType[*net.ParseError](err)
	return ok
}
