package resources

import "sync/atomic"

// DefaultMemory is the limit of a [Budget] that was not given one: enough for a thousand
// bodies of 64 KiB, and an eighth of the memory of a small container.
const DefaultMemory = 64 << 20

// A Budget counts bytes up to a limit. The zero Budget has the [DefaultMemory]. It is safe
// for concurrent use.
type Budget struct {
	limit atomic.Int64 // 0: the default
	used  atomic.Int64
}

// Memory is the budget that all parts of the program share.
var Memory = new(Budget)

// SetLimit changes the limit, in bytes. 0 is the [DefaultMemory], negative is no limit.
// Bytes that were taken before stay taken.
func (b *Budget) SetLimit(bytes int64) { b.limit.Store(bytes) }

// Take takes n bytes, and reports whether it could. If so, the caller must call [Budget.Give]
// with the same number, once.
func (b *Budget) Take(n int) bool {
	limit := b.limit.Load()
	if limit == 0 {
		limit = DefaultMemory
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
