package collector

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/seed90641741/spillway/internal/telemetry"
)

// maxClusters is the number of clusters with counts of their own. The configuration bounds the
// names; this bounds the memory of a process whose configuration is often replaced.
const maxClusters = 50

// otherClusters is the name of the clusters beyond maxClusters.
const otherClusters = "other"

// clusters counts events by cluster. The zero value is ready for use. It is safe for concurrent
// use, and allocates for the first event of a cluster only.
type clusters struct {
	mu  sync.Mutex                                   // of those who add a name
	all atomic.Pointer[map[string]*telemetry.Counts] // is replaced, and not changed
}

// of returns the counts of a cluster.
func (c *clusters) of(name string) *telemetry.Counts {
	if all := c.all.Load(); all != nil {
		if x := (*all)[name]; x != nil {
			return x
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	more := make(map[string]*telemetry.Counts)
	if all := c.all.Load(); all != nil {
		maps.Copy(more, *all)
	}
	if more[name] == nil && len(more) >= maxClusters {
		name = otherClusters
	}
	if more[name] == nil {
		more[name] = new(telemetry.Counts)
		c.all.Store(&more)
	}
	return more[name]
}

// read returns the events of each cluster.
func (c *clusters) read() map[string]*telemetry.Totals {
	events := make(map[string]*telemetry.Totals)
	if all := c.all.Load(); all != nil {
		for name, x := range *all {
			events[name] = new(telemetry.Totals)
			x.Read(events[name])
		}
	}
	return events
}
