package spillprom

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed90641741/spillway"
)

const (
	exemplarInterval = time.Second // in which a bucket keeps its exemplar
	maxTraceID       = 100         // bytes; with the name of the label, 128 runes are allowed
)

// An exemplar is a trace of one of the latencies in a bucket.
type exemplar struct {
	mu      sync.Mutex
	id      string
	latency time.Duration
	at      time.Time
}

// offer makes e the exemplar unless the present one is recent. It never waits.
func (x *exemplar) offer(e *spillway.Event, id func(context.Context) string) {
	if !x.mu.TryLock() {
		return
	}
	defer x.mu.Unlock()
	if age := e.Time.Sub(x.at); age >= 0 && age < exemplarInterval {
		return
	}
	x.at = e.Time // also where there is no trace, so that id is not called for each request
	if trace := id(e.Context); trace != "" {
		x.id, x.latency = strings.ToValidUTF8(trace[:min(len(trace), maxTraceID)], ""), e.Latency
	}
}

// get returns the exemplar, if there is one.
func (x *exemplar) get() (e prometheus.Exemplar, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.id == "" {
		return e, false
	}
	return prometheus.Exemplar{Value: x.latency.Seconds(), Labels: prometheus.Labels{"trace_id": x.id}, Timestamp: x.at}, true
}
