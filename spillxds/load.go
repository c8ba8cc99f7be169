package spillxds

import (
	"sync/atomic"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// A Locality is where a backend runs. The zero Locality is one that is not known.
type Locality struct {
	Region  string `json:"region"`
	Zone    string `json:"zone"`
	SubZone string `json:"sub_zone"`
}

func (l Locality) proto() *corev3.Locality {
	return &corev3.Locality{Region: l.Region, Zone: l.Zone, SubZone: l.SubZone}
}

// A Load counts the requests to one locality of a cluster, for load reports. It is
// for transports of your own; [Cluster.RoundTripper] and [Cluster.StatsHandler]
// have theirs. It is safe for concurrent use; [Cluster.Load] makes it.
type Load struct {
	inProgress                atomic.Int64
	issued, succeeded, failed counter
}

// Begin counts a request that is sent now. The caller must call End once.
func (l *Load) Begin() {
	l.inProgress.Add(1)
	l.issued.Add(1)
}

// End counts the end of a request, and whether it was a success.
func (l *Load) End(success bool) {
	if success {
		l.succeeded.Add(1)
	} else {
		l.failed.Add(1)
	}
	l.inProgress.Add(-1)
}

// A counter is what was counted and not reported yet.
type counter struct{ atomic.Uint64 }

func (c *counter) take() uint64     { return c.Swap(0) }
func (c *counter) putBack(n uint64) { c.Add(n) }

// counts are what one report says of a Load.
type counts struct{ issued, succeeded, failed, inProgress uint64 }

// take takes what has not been reported yet. It takes ends before beginnings, so
// that no report has the end of a request that was not issued.
func (l *Load) take() counts {
	c := counts{succeeded: l.succeeded.take(), failed: l.failed.take()}
	c.issued = l.issued.take()
	c.inProgress = uint64(max(l.inProgress.Load(), 0))
	return c
}

func (l *Load) putBack(c counts) {
	l.issued.putBack(c.issued)
	l.succeeded.putBack(c.succeeded)
	l.failed.putBack(c.failed)
}
