package collector

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/telemetry"
)

// maxClusters is the number of clusters with counts of their own. The configuration bounds the
// names; this bounds the memory of a process whose configuration is often replaced.
const maxClusters = 50

// otherClusters is the name of the clusters beyond maxClusters.
const otherClusters = "other"

// A cluster counts the events of one cluster.
type cluster struct {
	events   telemetry.Counts
	rejected atomic.Uint64
}

// A clusterCounter counts events by cluster. The zero value is ready for use. It is safe for
// concurrent use, and allocates for the first event of a cluster only.
type clusterCounter struct {
	mu  sync.Mutex                          // of those who add a name
	all atomic.Pointer[map[string]*cluster] // is replaced, and not changed
}

// add counts an event and returns its kind.
func (c *clusterCounter) add(name string, e *spillway.Event) telemetry.Kind {
	x := c.of(name)
	if e.Rejected && e.Mode == spillway.ModeEnforce {
		x.rejected.Add(1)
	}
	return x.events.Add(e)
}

// of returns the counts of a cluster.
func (c *clusterCounter) of(name string) *cluster {
	if all := c.all.Load(); all != nil {
		if x := (*all)[name]; x != nil {
			return x
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	more := make(map[string]*cluster)
	if all := c.all.Load(); all != nil {
		maps.Copy(more, *all)
	}
	if more[name] == nil && len(more) >= maxClusters {
		name = otherClusters
	}
	if more[name] == nil {
		more[name] = new(cluster)
		c.all.Store(&more)
	}
	return more[name]
}

// each calls f for each cluster.
func (c *clusterCounter) each(f func(name string, x *cluster)) {
	if all := c.all.Load(); all != nil {
		for name, x := range *all {
			f(name, x)
		}
	}
}
