package fault

import (
	"errors"
	"net"
	"net/url"
	"syscall"
)

// system adds what errors of the standard library mean that implement no interface for it:
//
//	a connection was not made: dial, proxy, DNS,   Unprocessed: nothing was sent
//	connection refused
//	an address or a URL that is malformed          RetryUnsafe: the next attempt has the same
//
// Any other error of a connection, such as a reset or an unexpected end, says nothing about
// what the backend has done: it stays RetryUnknown. err is not nil.
func (k *knowledge) system(err error) {
	if k.whole || k.local || k.safety {
		return
	}
	if malformed(err) {
		k.Safety = RetryUnsafe
		return
	}
	op, ok := errors.AsType[*net.OpError](err)
	dial := ok && (op.Op == "dial" || op.Op == "proxyconnect")
	_, dns := errors.AsType[*net.DNSError](err)
	k.Unprocessed = dial || dns || errors.Is(err, syscall.ECONNREFUSED)
}

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
