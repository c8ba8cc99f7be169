package xds

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed90641741/spillway/spillxds"
)

// A Status is what is wrong with a control plane. The zero Status is a control plane that sets
// all limits, or that no cluster needs.
type Status struct {
	Away     time.Duration // time without a stream; 0: one is open, or no cluster needs one
	Err      error         // why there is no stream; nil: unknown
	Rejected error         // what is not valid in the last response; its limits are not used
	Missing  []string      // clusters that the control plane does not have, sorted
}

// mostAway is how long a control plane may be away before it is a notice: longer than it takes to
// connect again after a restart of it.
const mostAway = 15 * time.Second

// Notice returns what operators should know, as two texts; wrong is false if there is nothing.
func (s Status) Notice() (headline, text string, wrong bool) {
	switch {
	case s.Away >= mostAway:
		text = fmt.Sprintf("No stream to it for %v", s.Away.Round(time.Second))
		if s.Err != nil {
			text += fmt.Sprintf(": %v", s.Err)
		}
		return "The control plane is away.", text + ". Clusters keep the limits that it sent last; max_requests is 1024 where it never sent any.", true
	case s.Rejected != nil:
		return "The control plane sends limits that are not valid.", fmt.Sprintf("%v. These clusters keep the limits that they have.", s.Rejected), true
	case len(s.Missing) > 0:
		return "The control plane does not have " + strings.Join(s.Missing, ", ") + ".",
			"The limits stay as it sent them last; max_requests is 1024 where it never sent any. Compare clusters[].xds.cluster with its clusters.", true
	default:
		return "", "", false
	}
}

// Status returns what is wrong with the control plane at the time now. While one control plane
// replaces another it is that of the one that is longest without a stream.
func (c *Connector) Status(now time.Time) (worst Status) {
	c.mu.Lock()
	planes := slices.Clone(c.planes)
	c.mu.Unlock()
	for _, p := range planes {
		if s := p.health.read(p.client.Stats(now).AcceptedTotal, now); s.Away > worst.Away || worst.Away == 0 && (s.Rejected != nil || len(s.Missing) > 0) {
			worst = s
		}
	}
	return worst
}

// A health is what is known of a connection to a control plane. The zero health is one that no
// cluster needs yet.
type health struct {
	mu       sync.Mutex
	held     map[string]int // limits in use, by cluster
	away     time.Time      // since when there is no stream; zero: one is open, or none is needed
	err      error          // why
	rejected error          // the last response
	accepted uint64         // responses before it
	missing  map[string]bool
}

// hold notes that the limits of a cluster are in use from now on.
func (h *health) hold(cluster string, connected bool, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.held) == 0 && !connected {
		h.away = now
	}
	if h.held == nil {
		h.held, h.missing = make(map[string]int), make(map[string]bool)
	}
	h.held[cluster]++
}

// leave notes that limits of a cluster are not used any more.
func (h *health) leave(cluster string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held[cluster]--; h.held[cluster] > 0 {
		return
	}
	delete(h.held, cluster)
	delete(h.missing, cluster)
	if len(h.held) == 0 {
		h.away, h.err, h.rejected = time.Time{}, nil, nil
	}
}

func (h *health) needed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.held) > 0
}

// see notes an event at the time now. accepted is the number of accepted responses.
func (h *health) see(e *spillxds.Event, accepted uint64, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch e.Kind {
	case spillxds.Connected:
		h.away, h.err = time.Time{}, nil
	case spillxds.Disconnected:
		if h.err = e.Err; h.away.IsZero() && len(h.held) > 0 {
			h.away = now
		}
	case spillxds.Rejected:
		h.rejected, h.accepted = e.Err, accepted
	case spillxds.Updated:
		delete(h.missing, e.Cluster)
	case spillxds.Removed, spillxds.NotFound:
		if h.held[e.Cluster] > 0 {
			h.missing[e.Cluster] = true
		}
	default:
	}
}

// read returns the Status at the time now. accepted is the number of accepted responses.
func (h *health) read(accepted uint64, now time.Time) (s Status) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.held) == 0 {
		return s
	}
	if !h.away.IsZero() {
		s.Away, s.Err = max(now.Sub(h.away), 1), h.err
	}
	if accepted == h.accepted {
		s.Rejected = h.rejected
	}
	s.Missing = slices.Sorted(maps.Keys(h.missing))
	return s
}
