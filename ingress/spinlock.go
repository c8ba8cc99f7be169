package ingress

import (
	"runtime"
	"sync/atomic"
)

// spinlock is a lock for the few goroutines of one request, which hold it for some
// instructions. A sync.Mutex in a [Passage] would force each onto the heap. Whoever ends it keeps
// it, which costs one atomic operation and not two.
type spinlock uint32

const (
	unlocked spinlock = iota
	locked
	over
)

// lock takes the lock, and reports whether it got it: it does unless the lock has ended.
func (l *spinlock) lock() bool { return l.change(locked) }

// end takes the lock for good, and reports whether it was the first to do so.
func (l *spinlock) end() bool { return l.change(over) }

func (l *spinlock) change(to spinlock) bool {
	for !atomic.CompareAndSwapUint32((*uint32)(l), uint32(unlocked), uint32(to)) {
		if atomic.LoadUint32((*uint32)(l)) == uint32(over) {
			return false
		}
		runtime.Gosched()
	}
	return true
}

func (l *spinlock) unlock() { atomic.StoreUint32((*uint32)(l), uint32(unlocked)) }
