package shed_test

import (
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/shed"
)

func BenchmarkRun(b *testing.B) {
	s := must(b, shed.Config{})
	now := t0
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Microsecond)
		d := s.Arrive(now, &spillway.Call{}, &idle, nil)
		d.Ticket.Settle(now, spillway.OutcomeServed)
	}
}

func BenchmarkWait(b *testing.B) {
	s := must(b, shed.Config{})
	now := t0
	w := new(shed.Waiter)
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Microsecond)
		s.Arrive(now, &spillway.Call{}, &busy, w)
		got, _ := s.Next(now, idle)
		got.Ticket.Settle(now, spillway.OutcomeServed)
	}
}

// swamped is a state in which all classes are rejected.
var swamped = shed.State{Processors: 1, Utilization: 2}

func BenchmarkReject(b *testing.B) {
	s := limited(b, concurrency.Config{})
	b.ReportAllocs()
	for b.Loop() {
		if s.Reject(t0, &spillway.Call{}, 0, &swamped) == nil {
			b.Fatal("not rejected")
		}
	}
}

// BenchmarkPassParallel shows what goroutines that share a calm Shedder with a limit cost each
// other.
func BenchmarkPassParallel(b *testing.B) {
	s := limited(b, concurrency.Config{})
	for ms := range 200 { // until there is calm
		d := s.Arrive(at(float64(ms)), &spillway.Call{}, &idle, nil)
		d.Ticket.Settle(at(float64(ms)), spillway.OutcomeServed)
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		now := at(200)
		for pb.Next() {
			now = now.Add(time.Microsecond)
			var ticket spillway.Ticket
			if !s.Pass(now, &spillway.Call{}, &idle, &ticket) {
				b.Error("not admitted")
				return
			}
			ticket.Settle(now, spillway.OutcomeServed)
		}
	})
}

// BenchmarkRejectParallel is BenchmarkReject with goroutines that share the Shedder.
func BenchmarkRejectParallel(b *testing.B) {
	s := limited(b, concurrency.Config{})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if s.Reject(t0, &spillway.Call{}, 0, &swamped) == nil {
				b.Error("not rejected")
				return
			}
		}
	})
}
