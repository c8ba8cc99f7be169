package admin

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed90641741/spillway/internal/admin/human"
	"github.com/seed90641741/spillway/internal/admin/slow"
	"github.com/seed90641741/spillway/internal/telemetry"
)

// A Notice is a condition that an operator should know about, even if requests succeed.
type Notice struct {
	Kind     string `json:"kind"`              // one of [telemetry.Notices]
	Subject  string `json:"subject,omitempty"` // what it is about: a cluster, a listener, a log; empty: the whole proxy
	Headline string `json:"headline"`          // a sentence
	Text     string `json:"text"`              // what it is due to, and what to do
}

// A Change is an event that explains why figures changed: a reload, a mode, a step of the clock.
type Change struct {
	At   time.Time `json:"-"`
	T    int64     `json:"t"` // At on the time axis of the rows
	Text string    `json:"text"`
	Bad  bool      `json:"bad"`
}

const (
	// maxChanges is how many changes a State has at most.
	maxChanges = 32
	// noticeClock is how long a step of the clock is a notice: the time that charts show by default.
	noticeClock = 5 * time.Minute
	// clockStep is the least difference between the wall clock and the monotonic clock that
	// counts as a step: time servers slew smaller differences.
	clockStep = 2 * time.Second
	// starvedShare is the share of time without a processor from which the figures describe
	// this host more than the upstream.
	starvedShare = 0.2
	mostSlow     = 3 // clusters with a notice
)

// axis returns t on the time axis of the rows: the clock at the start plus the time since
// then. A step of the clock does not move it.
func (s *sampler) axis(t time.Time) int64 { return s.started.Add(t.Sub(s.started)).Unix() }

// watchClock notes a step of the clock since the last sample.
func (s *sampler) watchClock(x *sample) {
	last := s.ago(0)
	step := x.wall.Sub(last.wall) - x.at.Sub(last.at)
	if step.Abs() < clockStep {
		return
	}
	direction := "forward"
	if step < 0 {
		direction = "back"
	}
	s.steps = append(s.steps, Change{At: x.at, Bad: true, Text: fmt.Sprintf("the clock of this host was set %s by %v", direction, step.Abs().Round(time.Second))})
	s.steps = s.steps[max(0, len(s.steps)-maxChanges):]
}

// changes returns the latest changes of the proxy and of the clock, the oldest first.
func (s *sampler) changes(l *Levels) []Change {
	all := append(slices.Clone(l.Changes), s.steps...)
	slices.SortStableFunc(all, func(a, b Change) int { return a.At.Compare(b.At) })
	all = all[max(0, len(all)-maxChanges):]
	for i := range all {
		all[i].T = s.axis(all[i].At)
	}
	return all
}

// notices returns the notices, the worst first.
func (s *sampler) notices(st *State, l *Levels, now time.Time) []Notice {
	all := []Notice{}
	if st.Mean.Stalled >= starvedShare {
		all = append(all, Notice{telemetry.NoticeStarved, "", "This process lacks processor time.", fmt.Sprintf(
			"It waited for a processor for %s of the last %.0f s: give this host or container more, or move other work away. Latencies are not the upstream's.",
			human.Percent(st.Mean.Stalled), st.Mean.Seconds)})
	}
	for i := range st.Clusters {
		all = append(all, endpointsDown(&st.Clusters[i])...)
	}
	for i := range st.Details.Places {
		p := &st.Details.Places[i]
		s.slow.See(now, slow.Route(p.Place), &p.Latency)
	}
	found := s.slow.Found()
	for _, x := range found[:min(mostSlow, len(found))] {
		headline, text := x.Notice()
		all = append(all, Notice{telemetry.NoticeSlow, x.Cluster, headline, text})
	}
	all = append(all, resetNotices(&s.ago(meanTicks).levels, l, st.Mean.Seconds)...)
	all = append(all, l.Notices...)
	all = append(all, quotaNotices(&s.ago(meanTicks).levels, l)...)
	for _, x := range st.Limits {
		if x.Odd {
			headline, text := x.Notice()
			all = append(all, Notice{telemetry.NoticeLimit, x.Name, headline, text})
		}
	}
	if n := len(s.steps); n > 0 && now.Sub(s.steps[n-1].At) < noticeClock {
		text := s.steps[n-1].Text
		all = append(all, Notice{
			telemetry.NoticeClock, "",
			strings.ToUpper(text[:1]) + text[1:] + ".",
			"Limits and deadlines do not depend on it; times in logs and charts before it are off by this. Check the time service of this host.",
		})
	}
	return all
}

// find returns the first element with a property, and a zero one if none has it.
func find[T any](all []T, is func(T) bool) (x T) {
	if i := slices.IndexFunc(all, is); i >= 0 {
		x = all[i]
	}
	return x
}

// resetNotices returns a notice for each listener that resets many connections, between two samples.
func resetNotices(then, now *Levels, seconds float64) (all []Notice) {
	for _, x := range now.Listeners {
		before := find(then.Listeners, func(y Listener) bool { return y.Name == x.Name && y.Mongo == x.Mongo })
		if headline, text, ok := x.RejectedBy.Minus(before.RejectedBy).Notice(x.Name, x.Mongo, seconds); ok {
			all = append(all, Notice{telemetry.NoticeResets, x.Name, headline, text})
		}
	}
	return all
}

// endpointsDown returns a notice for a cluster with some, but not all, endpoints down.
func endpointsDown(x *Cluster) []Notice {
	var down []string
	for _, e := range x.Down() {
		down = append(down, e.Address+" ("+e.Down+")")
	}
	if len(down) == 0 || len(down) == len(x.Endpoints) {
		return nil
	}
	verb := "are"
	if len(down) == 1 {
		verb = "is"
	}
	return []Notice{{
		telemetry.NoticeEndpoints, x.Name,
		fmt.Sprintf("%d of %d endpoints of %s %s down.", len(down), len(x.Endpoints), x.Name, verb),
		strings.Join(down[:min(3, len(down))], ", ") + ". The others serve.",
	}}
}

// mongoAway returns the MongoDB listeners whose servers were unreachable, or closed
// connections, between two samples.
func mongoAway(then, now *Levels) (names []string) {
	for _, x := range now.Mongo {
		away := strings.HasSuffix(x.Name, "connectionsClosed.unreachable") || strings.HasSuffix(x.Name, "connectionsClosed.hung_up")
		if !away || slices.Contains(names, x.Listener) {
			continue
		}
		before := find(then.Mongo, func(y Count) bool { return y.Listener == x.Listener && y.Name == x.Name })
		if x.Value > before.Value {
			names = append(names, x.Listener)
		}
	}
	return names
}
