package collector

import (
	"maps"
	"sync"
	"sync/atomic"
)

// A clusterCounter counts rejections by cluster. The zero value is ready for use. It is safe for
// concurrent use, and allocates for the first rejection of a cluster only. The configuration
// bounds the names.
type clusterCounter struct {
	mu     sync.Mutex                                // of those who add a name
	counts atomic.Pointer[map[string]*atomic.Uint64] // is replaced, and not changed
}

func (c *clusterCounter) add(name string) {
	if all := c.counts.Load(); all != nil {
		if n := (*all)[name]; n != nil {
			n.Add(1)
			return
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	more := make(map[string]*atomic.Uint64)
	if all := c.counts.Load(); all != nil {
		maps.Copy(more, *all)
	}
	if more[name] == nil {
		more[name] = new(atomic.Uint64)
	}
	more[name].Add(1)
	c.counts.Store(&more)
}

func (c *clusterCounter) read() map[string]uint64 {
	got := make(map[string]uint64)
	if all := c.counts.Load(); all != nil {
		for name, n := range *all {
			got[name] = n.Load()
		}
	}
	return got
}
