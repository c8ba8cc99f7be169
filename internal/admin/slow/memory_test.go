package slow

import (
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/seed90641741/spillway/internal/race"
)

// heap returns how many bytes are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestMemory: what a route takes after a day is bounded, whatever latencies its answers have.
func TestMemory(t *testing.T) {
	race.SkipOneGoroutine(t)
	for name, row := range map[string]struct {
		latency func(i int) time.Duration
		most    int64 // bytes
	}{
		"usual":   {func(i int) time.Duration { return time.Duration(20+i%20) * ms }, 12_000},
		"hostile": {func(i int) time.Duration { return time.Duration(1<<10) << (i % 31) * time.Duration(8+i%8) / 8 }, 30_000},
	} {
		const routes = 200
		var counts Counts
		w, before, now := New(), heap(), noon
		for second := range 3700 {
			now = now.Add(time.Second)
			for i := range 248 { // there are as many buckets
				counts.Add(0, row.latency(i))
			}
			read := counts.Read()
			for i := range routes {
				if second < 3 || second > 3650 || i == 0 { // an hour of one route, and a minute of the others
					w.See(now, Route{"main", "web", strconv.Itoa(i)}, &read)
				}
			}
		}
		longest := w.routes[Route{"main", "web", "0"}]
		all := heap() - before + routes*8*int64(cap(longest.usual)+cap(longest.aside))
		t.Logf("%s: %d bytes for a route", name, all/routes)
		if all/routes > row.most || len(longest.usual) != hour {
			t.Errorf("%s: %d bytes for a route, want at most %d; %d blocks", name, all/routes, row.most, len(longest.usual))
		}
		runtime.KeepAlive(w)
	}
}

// TestWindow: what is kept of the last seconds is what two readings ten seconds apart differ by.
func TestWindow(t *testing.T) {
	w, random, now := New(), rand.New(rand.NewPCG(1, 2)), noon
	var c Counts
	var read []Totals
	for range 200 {
		now = now.Add(time.Second)
		for range random.IntN(30) {
			c.Add(time.Duration(random.IntN(1e9)), time.Duration(random.ExpFloat64()*1e9))
		}
		read = append(read, c.Read())
		latest := len(read) - 1
		w.See(now, report, &read[latest])
		want := read[latest].since(&read[max(0, latest-window)])
		got := &w.last
		if got.sum != want.Sum() || got.waited != want.waited || got.Total() != want.Total() {
			t.Fatalf("second %d: %v, %v, %d; want %v, %v, %d", latest, got.sum, got.waited, got.Total(), want.Sum(), want.waited, want.Total())
		}
		for _, q := range []float64{0, 0.3, 0.9, 0.95, 1} {
			if got.Quantile(q) != want.Quantile(q) || got.Above(want.Quantile(q)) != want.Above(want.Quantile(q)) {
				t.Fatalf("second %d: quantile %v is %v, want %v", latest, q, got.Quantile(q), want.Quantile(q))
			}
		}
	}
}
