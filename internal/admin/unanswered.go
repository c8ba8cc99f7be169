package admin

import (
	"slices"

	"github.com/seed90641741/spillway/internal/admin/human"
)

// unanswered returns the clusters that answer no request, so that their limit is unknown.
func (s *State) unanswered() (clusters []string) {
	for i := range s.Gates {
		if g := &s.Gates[i]; g.Unknown && !slices.Contains(clusters, g.serverOf()) {
			clusters = append(clusters, g.serverOf())
		}
	}
	return clusters
}

// unansweredMatters reports whether clusters that answer nothing cause most of a notable loss: they are all clusters, or
// most rejections are of their requests. What a process without a processor does not get answered is not due to them.
func (s *State) unansweredMatters() bool {
	f, silent := &s.Mean, s.unanswered()
	loss := f.lost() + f.gone() + f.Rejected.sum()
	if len(silent) == 0 || !f.matters(loss, lostShare) || f.Stalled >= starvedShare {
		return false
	}
	if s.Program == library { // whose clusters are backends
		return s.silentServers()
	}
	here, others := 0.0, 0
	for i := range s.Clusters {
		if x := &s.Clusters[i]; slices.Contains(silent, x.Name) {
			here += x.Rejected
		} else {
			others++
		}
	}
	return others == 0 || here > loss/2
}

func (s *State) unansweredHeadline() string {
	return "No request to " + human.Listed(s.unanswered()) + " is answered, and the limit is unknown."
}

// unansweredWords says what is let in while no request to a cluster is answered, and why that may be.
func unansweredWords(s *State) string {
	silent := human.Listed(s.unanswered())
	if silent == "" {
		return ""
	}
	return "Until a request to " + silent + " is answered, gates that enforce let in one at a time, and gates that observe let in all. " +
		"Look at the service: it hangs, or gets more requests than it can do."
}
