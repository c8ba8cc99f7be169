// Package final keeps retries to one layer. A server puts a [Mark] into the context of
// each request. A client that gives up a call made with that context sets the mark.
// The server then answers "don't retry", unless its handler answers a success: if each
// layer retried the failures of the layer below, retries would multiply.
//
// Source: Site Reliability Engineering, chapter 21, "Deciding to Retry".
package final

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/seed90641741/spillway/fault"
)

// A Mark remembers that a call for a request must not be repeated by the caller of
// that request. It is never cleared. The zero Mark is not set; it is safe for
// concurrent use, also after the request has ended.
type Mark struct {
	set atomic.Bool
	// Repeated says that the request is a retry or a hedge of its client, so that its own
	// calls are not hedged. It is set before the request is served.
	Repeated bool
}

// Key is the key under which a context holds the *Mark of its request.
type Key struct{}

// Set sets the mark. A nil Mark stays as it is.
func (m *Mark) Set() {
	if m != nil && !m.set.Load() {
		m.set.Store(true)
	}
}

// IsSet reports whether the mark is set.
func (m *Mark) IsSet() bool { return m.set.Load() }

// Of returns the Mark of the request that ctx belongs to, or nil.
func Of(ctx context.Context) *Mark {
	m, _ := ctx.Value(Key{}).(*Mark)
	return m
}

// Error reports whether a call that ended with err must not be repeated by the layers above:
// its retries here are used up, this process rejected it, or the backend said "don't retry". A
// call that its caller canceled is not final; the losing attempt of a hedge ends in this way. Nor is
// one that was not valid, or that had no connection: another task may do better.
func Error(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	f := fault.Of(err)
	return (f.DontRetry || f.Unsent && f.Safety == fault.RetryUnknown) && !f.Canceled
}
