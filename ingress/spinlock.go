package ingress

import (
	"runtime"
	"sync/atomic"
)

// A spinlock is a lock for the goroutines of one request: the handler, and the ones that read its
// body or write its answer. Its holder reports to the policies, which hold their own mutexes
// briefly; it waits for no other request and starts no goroutine. A goroutine that finds it
// locked yields to others, so that a holder without a processor gets one.
//
// A sync.Mutex in its place would force each [Slot] onto the heap: BenchmarkAdmit then takes one
// allocation of 384 bytes, and three times as long. The goroutine that ends it keeps it, which
// costs one atomic operation and not two.
type spinlock uint32

const (
	unlocked spinlock = iota
	locked
	over // the request has ended: no goroutine gets the lock any more
)

// lock waits for the lock and takes it. It reports false if the lock has ended.
func (l *spinlock) lock() bool { return l.change(locked) }

// end waits for the lock and takes it for good. It reports whether it was the first to do so.
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
