package spillxds

import (
	"maps"
	"time"

	"github.com/seed90641741/spillway/inflight"
)

// Kind says what an [Event] is about.
type Kind uint8

// The kinds of events.
const (
	// Connected: a stream to the control plane is open.
	Connected Kind = iota + 1
	// Disconnected: the stream has ended, or could not be opened, for Err. Limits
	// stay in force, and there will be another.
	Disconnected
	// Updated: Limits of Cluster are in force.
	Updated
	// Rejected: a response has resources that are not valid, which Err names.
	// Their clusters keep the limits that they have.
	Rejected
	// Removed: the control plane does not have Cluster any more. Limits are those
	// that it has now.
	Removed
	// NotFound: the control plane has not sent Cluster in time.
	NotFound
	// Reporting: the load reporting server asks for reports at this Interval.
	Reporting
	// ReportingStopped: the stream of load reports has ended, or could not be
	// opened, for Err. What it did not report the next one does.
	ReportingStopped
	// Panicked: the Observer has panicked at the event before, with Err. The Client goes on. A panic in an interceptor of DialOptions
	// ends the stream, and is the Err of that.
	Panicked
)

var kindNames = [...]string{
	"invalid", "connected", "disconnected", "updated", "rejected", "removed", "not found", "reporting", "reporting stopped", "panicked",
}

// String returns a lower-case word or two for k.
func (k Kind) String() string {
	if int(k) >= len(kindNames) {
		k = 0
	}
	return kindNames[k]
}

// An Event is something that happened between the [Client] and the control plane.
type Event struct {
	Kind     Kind
	Cluster  string        // of Updated, Removed, NotFound, Panicked
	Limits   Limits        // of Updated, Removed
	Ignored  string        // of Updated: circuit breakers that are set and have no effect, by name
	Interval time.Duration // of Reporting
	Err      error         // of Disconnected, Rejected, NotFound, ReportingStopped, Panicked
}

// Stats says how a [Client] stands.
type Stats struct {
	// Connected says whether a stream to the control plane is open, and Streams
	// how many have been.
	Connected    bool
	StreamsTotal int
	// Accepted and Rejected are how many responses were; Ignored is how many were
	// of a type that was not requested. NACKs is how many rejections were sent: a
	// server that repeats itself gets fewer.
	AcceptedTotal, RejectedTotal, IgnoredTotal, NACKsTotal uint64
	// Reports is how many load reports were sent, and LostReports how many were
	// not, whose counts were put back. Interval is that of the reports; zero as
	// long as there was no server to ask for them.
	ReportsTotal, LostReportsTotal uint64
	Interval                       time.Duration
	// PanicsTotal is how often code of the user has panicked in a goroutine of the Client: the Observer, or an interceptor of DialOptions.
	PanicsTotal uint64
	// Clusters are the clusters in use.
	Clusters map[inflight.Key]ClusterStats
}

// ClusterStats says how a [Cluster] stands.
type ClusterStats struct {
	// Known says that the control plane has set the limits, or did once.
	Known bool
	// Limits are the limits in force.
	Limits Limits
	// Inflight is the state of the limiter.
	InFlight inflight.Stats
	// Retries is the number of retries in flight, and RetriesRejectedTotal the total number
	// rejected by the retry limit of the cluster.
	Retries              int
	RetriesRejectedTotal uint64
}

// Stats returns the state of c.
func (c *Client) Stats(now time.Time) Stats {
	c.mu.Lock()
	all := c.stats
	c.mu.Unlock()
	all.Clusters = maps.Collect(c.table.stats())
	return all
}

// stats returns the Stats of each cluster in use.
func (t *table) stats() func(func(inflight.Key, ClusterStats) bool) {
	return func(yield func(inflight.Key, ClusterStats) bool) {
		t.mu.Lock()
		defer t.mu.Unlock()
		for key, s := range t.shared {
			k := t.known[key.Cluster]
			if s.holders == 0 || k == nil {
				continue
			}
			if !yield(key, s.stats(k.name != "")) {
				return
			}
		}
	}
}

func (s *shared) stats(isKnown bool) ClusterStats {
	return ClusterStats{
		Known: isKnown, Limits: *s.retries.limits.Load(), InFlight: s.limiter.Stats(time.Now()),
		Retries: int(s.retries.active.Load()), RetriesRejectedTotal: s.retries.rejected.Load(),
	}
}
