package sim

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"
)

// million is a Config with many clients that each make few calls to a backend with spare
// capacity; benchmarks vary its size and load.
func million(clients int, rate float64, length time.Duration) Config {
	c := server(rate)
	c.Duration = length
	c.Clients[0].Count = clients
	c.Services[0].Processors = max(1, int(rate/500))
	return c
}

// measure runs c and reports what an event costs, and a client.
func measure(b *testing.B, c Config) {
	var events, calls uint64
	var bytes uint64
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		s, err := New(c)
		if err != nil {
			b.Fatal(err)
		}
		r, err := s.Run(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		events, calls = events+r.Events, calls+r.Calls
		bytes += after.HeapAlloc - before.HeapAlloc
		runtime.KeepAlive(s)
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(b.Elapsed())/float64(calls), "ns/call")
	b.ReportMetric(float64(bytes)/float64(b.N*c.Clients[0].Count), "B/client")
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/run")
}

// BenchmarkClients is ten simulated minutes of 1000 calls per second, from ever more
// clients.
func BenchmarkClients(b *testing.B) {
	for _, clients := range []int{1000, 30_000, 1_000_000} {
		b.Run(fmt.Sprint(clients), func(b *testing.B) { measure(b, million(clients, 1000, 10*time.Minute)) })
	}
}

// BenchmarkLoad is a simulated minute of ever more calls per second, from 10,000
// clients.
func BenchmarkLoad(b *testing.B) {
	for _, rate := range []float64{1000, 10_000, 100_000} {
		b.Run(fmt.Sprint(rate), func(b *testing.B) { measure(b, million(10_000, rate, time.Minute)) })
	}
}

// BenchmarkOverload is ten times what a backend can do, with all policies at work.
func BenchmarkOverload(b *testing.B) {
	c := server(10_000)
	c.Clients[0].Call.Retry = Retry{}
	c.Services[0].Queue = 20
	measure(b, c)
}

// BenchmarkClosedLoop has an event under way for each client.
func BenchmarkClosedLoop(b *testing.B) {
	for _, clients := range []int{1000, 30_000, 1_000_000} {
		b.Run(fmt.Sprint(clients), func(b *testing.B) {
			c := million(clients, 0, time.Duration(1_000_000/clients+1)*10*time.Second)
			c.Clients[0].Loop, c.Clients[0].Think = true, Exponential(10*time.Second)
			c.Services[0].Processors = max(1, clients/5000)
			if c.Duration > 10*time.Minute {
				c.Duration = 10 * time.Minute
			}
			measure(b, c)
		})
	}
}
