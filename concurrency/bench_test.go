package concurrency

import (
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/race"
)

// The clock is not read here: stacks read it once for all policies.

func BenchmarkServed(b *testing.B) {
	l, now := must(b, Config{}), time.Now()
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Microsecond)
		ticket, _ := l.Admit(now, spillway.Call{Key: "key"})
		ticket.Settle(now, spillway.OutcomeServed)
	}
}

func BenchmarkServedParallel(b *testing.B) {
	l := must(b, Config{})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		now := time.Now()
		for pb.Next() {
			now = now.Add(time.Microsecond)
			ticket, _ := l.Admit(now, spillway.Call{Key: "key"})
			ticket.Settle(now, spillway.OutcomeServed)
		}
	})
}

func BenchmarkSuspended(b *testing.B) {
	l := must(b, Config{})
	ticket := l.Enter(t0, spillway.Call{})
	b.ReportAllocs()
	for b.Loop() {
		ticket.Suspend(t0)
		ticket.Resume(t0)
	}
}

// The names beyond Keys share a limit: finding that out must stay cheap.
func BenchmarkManyNames(b *testing.B) {
	l, now := must(b, Config{MaxKeys: 4096}), time.Now()
	names := make([]string, 10_000)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		now = now.Add(time.Microsecond)
		ticket, _ := l.Admit(now, spillway.Call{Key: names[i%len(names)]})
		ticket.Settle(now, spillway.OutcomeServed)
	}
}

func TestNoAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	full := must(t, Config{MaxInFlight: 1, Fixed: true})
	full.Enter(t0, spillway.Call{})
	l := must(t, Config{})
	l.Ask(t0, "key") // a new key allocates
	ticket := l.Enter(t0, spillway.Call{Key: "key"})
	for name, f := range map[string]func(){
		"Ask": func() { l.Ask(t0, "key") },
		"Admit, Settle": func() {
			ticket, _ := l.Admit(t0, spillway.Call{Key: "key"})
			ticket.Settle(t0, spillway.OutcomeServed)
		},
		"Enter, Settle": func() {
			ticket := l.Enter(t0, spillway.Call{Key: "key"})
			ticket.Settle(t0, spillway.OutcomeTimedOut)
		},
		"Suspend, Resume": func() { ticket.Suspend(t0); ticket.Resume(t0) },
		"reject": func() {
			if _, err := full.Admit(t0, spillway.Call{}); err == nil {
				t.Error("admitted")
			}
		},
		"Beat, Rest, Working": func() { l.Beat(t0, false); l.Rest(); l.Working() },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations, want none", name, n)
		}
	}
}

// 64 keys, each in use, take at most 100 kB.
func TestMemory(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	names := make([]string, 64)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	const limiters = 10
	var list [limiters]*Limiter
	before := heap()
	for i := range list {
		list[i] = must(t, Config{})
		for _, name := range names {
			ticket := list[i].Enter(t0, spillway.Call{Key: name})
			ticket.Settle(t0.Add(time.Millisecond), spillway.OutcomeServed)
		}
	}
	used := (heap() - before) / limiters
	t.Logf("%d bytes for 64 keys", used)
	if used > 100_000 || used < 1000 {
		t.Errorf("a Limiter with 64 keys takes %d bytes, want at most 100000", used)
	}
	runtime.KeepAlive(list)
}
