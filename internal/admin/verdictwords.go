package admin

import (
	"strings"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin/human"
)

// missed returns the share of answered requests that missed their deadline.
func (f *Figures) missed() float64 { return f.Late / max(f.Late+f.Goodput, 1e-9) }

// overdue reports whether the p99 is later than the deadline. It compares counts: a late
// request takes its whole deadline, and a quantile is only accurate to some percent.
func (f *Figures) overdue() bool { return f.P99 != nil && f.missed() > 0.01 }

func losses(f *Figures) string {
	var parts []string
	for _, x := range []struct {
		rate float64
		what string
	}{{f.Late, "too late"}, {f.Failed, "failed"}, {f.RejectedUpstream, "rejected by the upstream"}, {f.gone(), "given up by clients"}} {
		if x.rate > 0 {
			parts = append(parts, human.PerSecond(x.rate)+" "+x.what)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "Lost: " + strings.Join(parts, ", ") + "."
}

func rejectedWords(f *Figures) string {
	if f.Rejected.sum() == 0 {
		return ""
	}
	return "Rejected: " + human.PerSecond(f.Rejected.sum()) + ", " + human.ClassShares(f.Rejected, f.Ended) + "."
}

// would describes the requests that observing gates would have rejected.
func would(s *State) string {
	f := &s.Mean
	switch {
	case s.Mode == spillway.ModeObserve && f.matters(f.gone(), lostShare) && len(s.unanswered()) == 0:
		return "Where clients give up, gates that observe report fewer rejections than enforce would make."
	case f.Would.sum() == 0:
		return ""
	case s.limitOf(spillway.ModeObserve) == "":
		// An overload that no gate holds back makes gates count more, and of all classes.
		return "Gates that observe would reject at most " + human.PerSecond(f.Would.sum()) + ", lower classes first."
	default:
		return "Gates that observe would reject at most " + human.PerSecond(f.Would.sum()) + "."
	}
}

func latencies(f *Figures) string {
	switch {
	case f.P99 == nil:
		return ""
	case f.Deadline == nil:
		return "p99 " + human.Duration(*f.P99) + "."
	case f.overdue():
		return "p99 " + human.Duration(*f.P99) + ": " + human.Percent(f.missed()) + " miss their deadline, most often " + human.Duration(*f.Deadline) + "."
	default:
		return "p99 " + human.Duration(*f.P99) + ", inside the deadline of " + human.Duration(*f.Deadline) + "."
	}
}

// clustersDown returns the clusters with endpoints of which none gets requests.
func clustersDown(s *State) (down []Cluster) {
	for _, x := range s.Clusters {
		if len(x.Endpoints) > 0 && len(x.Down()) == len(x.Endpoints) {
			down = append(down, x)
		}
	}
	return down
}

func listed(clusters []Cluster) string {
	var names []string
	for _, x := range clusters {
		names = append(names, x.Name)
	}
	return human.Listed(names)
}

// unreachable names the clusters that are down, with the error of the first endpoint.
func unreachable(s *State) string {
	down := clustersDown(s)
	if len(down) == 0 {
		return ""
	}
	first := down[0].Endpoints[0]
	return " All endpoints of " + listed(down) + " are down; " + first.Address + ": " + first.Down + "."
}

func addresses(s *State) string {
	var all []string
	for _, l := range s.Listeners {
		all = append(all, l.Address)
	}
	if len(all) == 0 {
		return "no address: nothing listens"
	}
	return human.Listed(all)
}

// inverted reports whether a class loses a tenth more of its requests than a lower one does.
func inverted(rejected, ended Classes) bool {
	least := 1.0
	for class, came := range ended {
		if share := rejected[class] / max(came, 1e-9); came > 0 && share > least+0.1 {
			return true
		} else if came > 0 {
			least = min(least, share)
		}
	}
	return false
}
