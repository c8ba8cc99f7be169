package limits

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/seed90641741/spillway/concurrency"
)

// TestKeys: the keys of a gate that have had requests, the cluster and the keys of its routes; the busiest first. While the limit of all keys is at work, it
// is theirs.
func TestKeys(t *testing.T) {
	s := concurrency.Stats{Keys: []concurrency.KeyStats{
		{Key: concurrency.Others, Limit: math.Inf(1)},
		{Key: "web: /report", InFlight: 2, Limit: 8, State: concurrency.Limiting, BaseLatency: time.Millisecond, Latency: time.Second},
		{Key: "web", InFlight: 5, Limit: math.Inf(1), Latency: time.Millisecond},
		{Key: "web: workers", Throughput: 3, Limit: 7},
	}}
	want := []Key{
		{Name: "web", InFlight: 5, Latency: time.Millisecond},
		{Name: "/report", InFlight: 2, Limit: 8, Bound: true, Baseline: time.Millisecond, Latency: time.Second},
		{Name: "workers", Limit: 7},
	}
	got := Keys("web", &s)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	s.Shared = concurrency.KeyStats{Limit: 20, State: concurrency.Limiting}
	want = []Key{
		{Name: "web", InFlight: 5, Limit: 20, Shared: true, Bound: true, Latency: time.Millisecond},
		{Name: "/report", InFlight: 2, Limit: 20, Shared: true, Bound: true, Baseline: time.Millisecond, Latency: time.Second},
		{Name: "workers", Limit: 20, Shared: true, Bound: true},
	}
	if got := Keys("web", &s); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("with a limit of all keys %+v, want %+v", got, want)
	}
	for i := range 100 {
		s.Keys = append(s.Keys, concurrency.KeyStats{Key: fmt.Sprint("web: /", i), InFlight: i, Limit: 9})
	}
	if got := Keys("web", &s); len(got) != mostKeys || got[0].Name != "/99" {
		t.Errorf("%d keys, the first is %+v", len(got), got[0])
	}
}
