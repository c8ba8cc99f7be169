package spillxds

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/retry"
)

// state is what is known of a cluster.
type state uint8

const (
	unknown state = iota // nothing yet
	current              // its limits are in force
	missing              // the control plane does not have it, or no more
)

// A known is a cluster that a holder asked for, or, with a wildcard, that the
// control plane told of. It outlives streams: what was accepted once stays.
type known struct {
	resource

	state    state
	why      error         // of missing
	version  string        // accepted, of the incremental protocol
	deadline time.Time     // for the first answer; zero: none
	heard    bool          // of on this stream: it exists, be it good or bad
	asked    bool          // for on this stream, by name
	turned   chan struct{} // closed when the state changes
	members  []*shared
}

func (k *known) turn(s state, why error) {
	k.state, k.why, k.deadline = s, why, time.Time{}
	close(k.turned)
	k.turned = make(chan struct{})
}

// accept puts the limits of r in force.
func (k *known) accept(r *resource) {
	k.resource = *r
	k.turn(current, nil)
	for _, s := range k.members {
		s.set(&k.resource)
	}
}

// A table is what the client knows and what it is asked for: the state that all
// streams share. Nothing in it waits or talks.
type table struct {
	client  *Client
	changed chan struct{} // holds a value when there is something new to subscribe to
	wanted  chan struct{} // closed when a cluster is to be reported on
	want    func()        // closes it

	mu      sync.Mutex
	known   map[string]*known        // by name of the cluster
	shared  map[inflight.Key]*shared // those without holders are still to be reported
	version string                   // accepted, of the state-of-the-world protocol
	closed  bool                     // nothing more is reported
}

func newTable(c *Client) *table {
	wanted := make(chan struct{})
	return &table{
		client: c, changed: make(chan struct{}, 1),
		wanted: wanted, want: sync.OnceFunc(func() { close(wanted) }),
		known: map[string]*known{}, shared: map[inflight.Key]*shared{},
	}
}

// wake wakes the watcher after a change of subscriptions.
func (t *table) wake() {
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// hold returns the shared part of a Cluster, for one more holder.
func (t *table) hold(key inflight.Key) (*shared, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.shared[key]
	if s == nil {
		var err error
		if s, err = t.share(key); err != nil {
			return nil, err
		}
	}
	s.holders++
	if s.holders == 1 {
		t.join(s)
	}
	return s, nil
}

// share makes room for a new key, at the expense of one without holders.
func (t *table) share(key inflight.Key) (*shared, error) {
	if len(t.shared) >= t.client.config.MaxClusters && !t.evict() {
		return nil, fmt.Errorf("spillxds: %d clusters are in use, which is Config.MaxClusters", len(t.shared))
	}
	fallback, err := retry.NewBudgeted(retry.BudgetedConfig{})
	if err != nil {
		return nil, fmt.Errorf("spillxds: %w", err)
	}
	s := &shared{key: key, client: t.client, fallback: fallback, since: time.Now()}
	s.limiter, s.unshare = t.client.registry.Share(key)
	s.loads.Store(&map[Locality]*Load{})
	s.retries.inflight = s.limiter
	s.retries.limits.Store(&defaultLimits)
	t.shared[key] = s
	return s, nil
}

// evict forgets a key without holders, with what it still had to report.
func (t *table) evict() bool {
	for _, s := range t.shared {
		if s.holders == 0 {
			t.forget(s)
			return true
		}
	}
	return false
}

func (t *table) forget(s *shared) {
	delete(t.shared, s.key)
	s.unshare()
}

// join makes s follow the resource of its cluster.
func (t *table) join(s *shared) {
	k := t.known[s.key.Cluster]
	if k == nil {
		k = t.add(s.key.Cluster)
		t.wake()
	}
	k.members = append(k.members, s)
	if k.name != "" { // accepted at some time
		s.set(&k.resource)
	}
	t.client.wanted(s)
}

func (t *table) add(name string) *known {
	k := &known{turned: make(chan struct{})}
	t.known[name] = k
	return k
}

// drop is called for each holder that leaves.
func (t *table) drop(s *shared) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.holders--
	if s.holders > 0 {
		return
	}
	k := t.known[s.key.Cluster]
	k.members = slices.DeleteFunc(k.members, func(m *shared) bool { return m == s })
	if len(k.members) == 0 {
		if t.isOver(k) {
			delete(t.known, s.key.Cluster)
		}
		t.wake()
	}
	if t.closed || !t.client.reports(s) {
		t.forget(s)
	}
}

// isOver reports whether a cluster that nobody holds any more is forgotten at once. One that was asked for is forgotten with its
// subscription, and one that a wildcard has brought when the control plane removes it: neither would be sent again before. What else
// was held under a wildcard does not exist there.
func (t *table) isOver(k *known) bool {
	if t.client.config.Wildcard {
		return k.state != current
	}
	return !k.asked
}

// close forgets what has no holders, now and later.
func (t *table) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, s := range t.shared {
		if s.holders == 0 {
			t.forget(s)
		}
	}
}

// names returns what to subscribe to, in order. It is empty for a wildcard.
func (t *table) names() (names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.client.config.Wildcard {
		return nil
	}
	for name, k := range t.known {
		if len(k.members) > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// subscribe is names for a request that is sent now: what it does not name is
// forgotten.
func (t *table) subscribe() (names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.client.config.Wildcard {
		return nil
	}
	t.prune()
	for name, k := range t.known {
		k.asked = true
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// prune forgets what has no holders, but for what a wildcard brings.
func (t *table) prune() {
	if t.client.config.Wildcard {
		return
	}
	maps.DeleteFunc(t.known, func(_ string, k *known) bool { return len(k.members) == 0 })
}

// accepted returns the version of each resource that was accepted.
func (t *table) accepted() map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	versions := map[string]string{}
	for name, k := range t.known {
		if k.version != "" {
			versions[name] = k.version
		}
	}
	return versions
}

func (t *table) acceptedVersion() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.version
}

// heldVersion is acceptedVersion for the first request of a stream. There it says
// that the client has everything it asks for, and may get no answer if that is current.
func (t *table) heldVersion() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.known {
		if k.state == unknown || errors.Is(k.why, errSilent) {
			return ""
		}
	}
	return t.version
}

// stateOf returns what is known of a cluster, a channel that is closed when that changes,
// and why the cluster is missing, if it is.
func (t *table) stateOf(name string) (s state, changed <-chan struct{}, why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k := t.known[name]; k != nil {
		return k.state, k.turned, k.why
	}
	return unknown, nil, nil
}

// await starts the time within which clusters must come that were never heard of.
func (t *table) await(now time.Time, within time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.known {
		if k.state == unknown && !k.heard && k.deadline.IsZero() {
			k.deadline = now.Add(within)
		}
	}
}

// streamEnded ends the subscriptions: silence now proves nothing.
func (t *table) streamEnded() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prune()
	for _, k := range t.known {
		k.deadline, k.heard, k.asked = time.Time{}, false, false
	}
}

// overdue returns an event for each cluster that has not come in time, for the reason why,
// and when the next one is due, zero if none is.
func (t *table) overdue(now time.Time, why error) (told []Event, next time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, k := range t.known {
		switch {
		case k.deadline.IsZero():
		case !now.Before(k.deadline):
			k.turn(missing, why)
			told = append(told, Event{Kind: NotFound, Cluster: name, Err: why})
		case next.IsZero() || k.deadline.Before(next):
			next = k.deadline
		}
	}
	return told, next
}
