package ingress

import (
	"runtime/debug"
	"sync"
	"time"
)

// collectEvery is the shortest time from one collection of garbage for lack of memory to the
// next. If all memory is in use, a collection does not help, and takes some tenths of a second of
// processor time for each gigabyte.
const collectEvery = 10 * time.Second

// garbage is the state of the collections that Servers have asked for. It is one for the process,
// as all its Servers share the memory.
var garbage struct {
	collecting sync.Mutex // held during a collection; no goroutine waits for it
	collected  time.Time  // when the last one ended
}

// collect has the Go runtime collect garbage and give memory back, in the background, if the
// Server rejects requests because memory is short. Until then garbage counts as memory, and a
// process that rejects its requests makes too little of it for a collection to begin by itself.
func (s *Server) collect(now time.Time) {
	if !s.core.Sheds() || !garbage.collecting.TryLock() {
		return
	}
	if now.Sub(garbage.collected).Abs() < collectEvery {
		garbage.collecting.Unlock()
		return
	}
	s.collections.Go(func() {
		defer garbage.collecting.Unlock()
		debug.FreeOSMemory()
		garbage.collected = time.Now()
	})
}
