package proxy

import (
	"hash/maphash"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/config"
	"github.com/seed90641741/spillway/throttle"
)

// throttles rejects what a cluster would refuse. It is asked once for each request, and
// learns how the request ended: an attempt that one endpoint refuses and another one
// serves is no sign of a cluster that is overloaded. Refusals of one customer, which is
// over its quota, count as nothing.
//
// Each operation, by the shape of its path, has its own throttle, so that one that always
// fails does not shut the cluster for the others. Memory is bounded: there are at most
// [maxOperations] throttles. One without requests for longer than its window is replaced;
// if all are in use, operations share one.
//
// It is an [http.RoundTripper].
type throttles struct {
	next     http.RoundTripper
	name     string // of the cluster
	mode     spillway.Mode
	config   throttle.Config
	window   time.Duration
	observer spillway.Observer
	apart    bool // each operation has its own
	seed     maphash.Seed
	start    time.Time

	sets [operationSets][operationWays]atomic.Pointer[operation]

	mu     sync.Mutex // of changes of the table
	former throttle.Stats
}

// The table has sets of a few places, as a processor's cache does: a lookup takes the
// same time however many operations there are.
const (
	operationSets = 32
	operationWays = 8
	maxOperations = operationSets * operationWays
)

// An operation is requests of one shape.
type operation struct {
	shape    uint64
	used     atomic.Int64 // when it was last looked up, since the start; coarse
	throttle *throttle.Throttle
}

// coarse is how old the time of the last use may be, so that it is rarely written.
const coarse = int64(time.Second)

func newThrottles(x *config.Cluster, c throttle.Config, mode spillway.Mode, o spillway.Observer) *throttles {
	t := &throttles{
		name: x.Name, mode: mode, config: c, window: c.Window, observer: o, apart: !x.Throttle.WholeCluster,
		seed: maphash.MakeSeed(), start: time.Now(),
	}
	if t.window == 0 {
		t.window = 30 * time.Second // the default of package throttle
	}
	return t
}

// RoundTrip implements [http.RoundTripper].
func (t *throttles) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.mode == spillway.Off {
		return t.next.RoundTrip(r)
	}
	start, ctx := time.Now(), r.Context()
	call := spillway.Call{Key: t.name, Criticality: spillway.CriticalityFrom(ctx)}
	ticket, err := t.of(start, r).Admit(start, call)
	admitted := err == nil
	if !admitted {
		t.report(spillway.Event{Time: start, Call: call, Policy: "throttle", Mode: t.mode, Refused: true, Err: err})
		if t.mode == spillway.Enforce {
			if r.Body != nil {
				_ = r.Body.Close() // as a RoundTripper must
			}
			return nil, err
		}
	}
	resp, err := t.next.RoundTrip(r)
	now := time.Now()
	var o spillway.Outcome
	if err != nil {
		o = errorOf(ctx, err, start, now).Outcome
	} else {
		said := read(resp, now)
		o = said.outcome()
	}
	ticket.Settle(now, o)
	if admitted {
		t.report(spillway.Event{Time: start, Latency: now.Sub(start), Call: call, Policy: "throttle", Mode: t.mode, Outcome: o, Err: err})
	}
	return resp, err
}

func (t *throttles) report(e spillway.Event) {
	if t.observer != nil {
		t.observer.Observe(e)
	}
}

// of returns the throttle of a request.
func (t *throttles) of(now time.Time, r *http.Request) *throttle.Throttle {
	shape := uint64(0)
	if t.apart {
		shape = shapeOf(t.seed, r.URL.Path, isGRPC(r))
	}
	at := int64(now.Sub(t.start))
	set := &t.sets[shape%operationSets]
	for i := range set {
		o := set[i].Load()
		if o == nil {
			break
		}
		if o.shape == shape {
			o.touch(at)
			return o.throttle
		}
	}
	return t.add(set, shape, at).throttle
}

func (o *operation) touch(at int64) {
	if at-o.used.Load() > coarse {
		o.used.Store(at)
	}
}

// add makes a throttle, and replaces one that is not used any more, or returns one to
// share.
func (t *throttles) add(set *[operationWays]atomic.Pointer[operation], shape uint64, at int64) *operation {
	t.mu.Lock()
	defer t.mu.Unlock()
	oldest := 0
	for i := range set {
		o := set[i].Load()
		if o == nil {
			oldest = i
			break
		}
		if o.shape == shape {
			return o
		}
		if o.used.Load() < set[oldest].Load().used.Load() {
			oldest = i
		}
	}
	if o := set[oldest].Load(); o != nil {
		if at-o.used.Load() <= int64(t.window)+coarse {
			return set[shape/operationSets%operationWays].Load()
		}
		sum(&t.former, o.throttle.Stats(t.start.Add(time.Duration(at))), true)
	}
	o := &operation{shape: shape}
	o.throttle, _ = throttle.New(t.config) // it was checked
	o.used.Store(at)
	set[oldest].Store(o)
	return o
}

// stats returns the levels of all throttles: the sums, and as probability the share of
// all requests that is rejected now.
func (t *throttles) stats(now time.Time) throttle.Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.former
	for i := range t.sets {
		for j := range t.sets[i] {
			if o := t.sets[i][j].Load(); o != nil {
				sum(&all, o.throttle.Stats(now), false)
			}
		}
	}
	for i := range all {
		if c := &all[i]; c.Requests > 0 {
			c.Probability /= c.Requests
		}
	}
	return all
}

// sum adds up what throttles know; their probabilities by their requests. Of one that
// is gone only totals count.
func sum(all *throttle.Stats, one throttle.Stats, gone bool) {
	for i := range all {
		c := &all[i]
		c.RejectedTotal += one[i].RejectedTotal
		c.ProbesTotal += one[i].ProbesTotal
		if !gone {
			c.Requests += one[i].Requests
			c.Accepts += one[i].Accepts
			c.Probability += one[i].Probability * one[i].Requests
		}
	}
}

// maxSegments is how many segments of a path tell operations apart.
const maxSegments = 8

// shapeOf returns a hash of the shape of a path: segments that look like identifiers are
// alike, so that /users/17/export and /users/18/export are one operation. The path of a
// call of gRPC has no identifiers.
func shapeOf(seed maphash.Seed, path string, call bool) uint64 {
	if call {
		return maphash.String(seed, path)
	}
	h := uint64(len("path"))
	n := 0
	for segment := range strings.SplitSeq(path, "/") {
		if n++; n > maxSegments {
			break
		}
		if identifier(segment) {
			segment = "*"
		}
		h = h*0x9E3779B97F4A7C15 + maphash.String(seed, segment) // an odd factor: the order counts
	}
	return h
}

// Segments of at most maxVersion bytes, such as v1, are no identifiers, even with digits;
// longer ones than maxWord bytes always are.
const (
	maxVersion = 3
	maxWord    = 32
)

// identifier reports whether a segment of a path looks like an identifier: a number, or
// a word with digits, or something long.
func identifier(segment string) bool {
	switch {
	case len(segment) > maxWord:
		return true
	case strings.ContainsAny(segment, "0123456789"):
		return len(segment) > maxVersion || strings.Trim(segment, "0123456789") == ""
	}
	return false
}
