package ingress

import (
	"runtime"
	"sync/atomic"
)

// spinlock is a lock for the few goroutines of one request, which hold it for some
// instructions. A sync.Mutex in a [Passage] would force each onto the heap.
type spinlock uint32

func (l *spinlock) lock() {
	for !atomic.CompareAndSwapUint32((*uint32)(l), 0, 1) {
		runtime.Gosched()
	}
}

func (l *spinlock) unlock() { atomic.StoreUint32((*uint32)(l), 0) }
