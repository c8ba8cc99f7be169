package spillxds

import (
	"cmp"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	lrsv3 "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	"google.golang.org/protobuf/types/known/durationpb"
)

// maxReportInterval is the longest one that a server can ask for.
const maxReportInterval = time.Hour

// wish is what a load reporting server has asked for.
type wish struct {
	interval time.Duration
	all      bool
	clusters map[string]bool
}

// wishOf reads a response. An interval that is absent, negative or absurd is
// brought into range; neither may a server make a client spin, nor keep it silent
// for a day.
func wishOf(m *lrsv3.LoadStatsResponse, least time.Duration) wish {
	w := wish{all: m.GetSendAllClusters(), clusters: map[string]bool{}}
	w.interval = min(max(m.GetLoadReportingInterval().AsDuration(), least), maxReportInterval)
	for _, name := range m.GetClusters() {
		w.clusters[name] = true
	}
	return w
}

func (w *wish) has(cluster string) bool { return w.all || w.clusters[cluster] }

// wanted has the stream of load reports opened if s is to be reported on.
func (c *Client) wanted(s *shared) {
	if c.reports(s) {
		c.table.want()
	}
}

// A draft is a report that was not sent yet, and the counts that were taken for it. Either
// it is settled once it was sent, or else everything is put back.
type draft struct {
	table   *table
	at      time.Time
	request *lrsv3.LoadStatsRequest
	asked   []*shared // also those of which there is nothing to say
	parts   []part
}

// part is what a draft says of one cluster.
type part struct {
	*shared

	drops uint64
	loads map[*Load]counts
}

// draft takes what is to be reported now.
func (t *table) draft(now time.Time, w *wish) *draft {
	d := &draft{table: t, at: now, request: new(lrsv3.LoadStatsRequest)}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.shared {
		if t.client.reports(s) && w.has(s.key.Cluster) {
			d.asked = append(d.asked, s)
			d.add(s)
		}
	}
	return d
}

// reports says whether anything of s is to be reported at all.
func (c *Client) reports(s *shared) bool {
	return c.config.Reports == Always || c.config.Reports == AsTold && s.wanted
}

func (d *draft) add(s *shared) {
	p := part{shared: s, drops: s.takeDrops(), loads: map[*Load]counts{}}
	stats := &endpointv3.ClusterStats{
		ClusterName: s.key.Cluster, ClusterServiceName: cmp.Or(s.key.Service, s.service),
		TotalDroppedRequests: p.drops,
		LoadReportInterval:   durationpb.New(d.at.Sub(s.since)),
	}
	for locality, load := range *s.loads.Load() {
		c := load.take()
		p.loads[load] = c
		if c != (counts{}) {
			stats.UpstreamLocalityStats = append(stats.UpstreamLocalityStats, localityStats(locality, c))
		}
	}
	var rest counts
	if len(p.loads) == 0 { // nobody counts requests, but the limiter knows this much
		rest.inProgress = uint64(s.limiter.Stats(time.Now()).InFlight)
	}
	if p.drops == 0 && len(stats.GetUpstreamLocalityStats()) == 0 && rest == (counts{}) {
		return
	}
	if len(stats.GetUpstreamLocalityStats()) == 0 { // a report without one is not valid
		stats.UpstreamLocalityStats = []*endpointv3.UpstreamLocalityStats{localityStats(Locality{}, rest)}
	}
	d.parts = append(d.parts, p)
	d.request.ClusterStats = append(d.request.ClusterStats, stats)
}

func localityStats(l Locality, c counts) *endpointv3.UpstreamLocalityStats {
	return &endpointv3.UpstreamLocalityStats{
		Locality: l.proto(), TotalIssuedRequests: c.issued, TotalSuccessfulRequests: c.succeeded,
		TotalErrorRequests: c.failed, TotalRequestsInProgress: c.inProgress,
	}
}

// takeDrops takes the drops of the limiter, without the ones that were let through.
// Which of the two is counted first is not certain, so what is let through may
// have to be taken off the next report.
func (s *shared) takeDrops() uint64 {
	drops, passed := s.limiter.TakeRejected(), s.passed.take()
	if passed > drops {
		s.passed.putBack(passed - drops)
		return 0
	}
	return drops - passed
}

// settle is for a report that was sent. Clusters that are not in use are forgotten
// when there is nothing more to say of them.
func (d *draft) settle() {
	d.table.mu.Lock()
	defer d.table.mu.Unlock()
	for _, s := range d.asked {
		s.since = d.at
	}
	for _, s := range d.table.shared {
		if s.holders == 0 && s.idle() {
			d.table.forget(s)
		}
	}
}

// putBack is for a report that was not sent.
func (d *draft) putBack() {
	for _, p := range d.parts {
		p.limiter.PutBackRejected(p.drops)
		for load, c := range p.loads {
			load.putBack(c)
		}
	}
}

// idle reports whether nothing is in progress and everything is reported.
func (s *shared) idle() bool {
	for _, l := range *s.loads.Load() {
		if l.inProgress.Load() != 0 || l.issued.Load() != 0 || l.succeeded.Load() != 0 || l.failed.Load() != 0 {
			return false
		}
	}
	return s.limiter.Stats(time.Now()).InFlight == 0 && s.owed() == 0
}

// owed returns how many drops are still to be reported.
func (s *shared) owed() uint64 {
	n := s.takeDrops()
	s.limiter.PutBackRejected(n)
	return n
}

// unreported returns how many drops are still to be reported of all clusters.
func (t *table) unreported() (n uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.shared {
		if t.client.reports(s) {
			n += s.owed()
		}
	}
	return n
}
