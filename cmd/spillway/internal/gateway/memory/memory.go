// Package memory bounds how many bytes the process keeps on behalf of clients: bodies
// of requests, and messages that are not complete yet.
//
// There is one bound for the process, as there is one heap. Callers take bytes as they
// arrive, never when a client announces them: an announcement costs a client nothing.
// A caller that gets none must go on without keeping the bytes, or reject the request.
package memory

import "sync/atomic"

// DefaultLimit is the limit of a [Budget] that was not given one: enough for a thousand
// bodies of 64 KiB, and an eighth of the memory of a small container.
const DefaultLimit = 64 << 20

// A Budget counts bytes up to a limit. The zero Budget has the [DefaultLimit]. It is safe
// for concurrent use.
type Budget struct {
	limit atomic.Int64 // 0: the default
	used  atomic.Int64
}

// Process is the budget that all parts of the program share.
var Process = new(Budget)

// SetLimit changes the limit, in bytes. 0 is the [DefaultLimit], negative is no limit.
// Bytes that were taken before stay taken.
func (b *Budget) SetLimit(bytes int64) { b.limit.Store(bytes) }

// Take takes n bytes, and reports whether it could. If so, the caller must call [Budget.Give]
// with the same number, once.
func (b *Budget) Take(n int) bool {
	limit := b.limit.Load()
	if limit == 0 {
		limit = DefaultLimit
	}
	if used := b.used.Add(int64(n)); limit > 0 && used > limit {
		b.used.Add(-int64(n))
		return false
	}
	return true
}

// Give gives back what Take has taken.
func (b *Budget) Give(n int) { b.used.Add(-int64(n)) }

// Used returns how many bytes are taken.
func (b *Budget) Used() int64 { return b.used.Load() }
