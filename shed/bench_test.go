package shed_test

import (
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/shed"
)

func BenchmarkRun(b *testing.B) {
	s := must(b, shed.Config{})
	now := t0
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Microsecond)
		d := s.Arrive(now, spillway.Call{}, idle, nil)
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
		s.Arrive(now, spillway.Call{}, busy, w)
		got, _ := s.Next(now, idle)
		got.Ticket.Settle(now, spillway.OutcomeServed)
	}
}

func BenchmarkRefuse(b *testing.B) {
	s := must(b, shed.Config{})
	for range 200 {
		arrive(s, t0, spillway.Critical, busy)
	}
	b.ReportAllocs()
	for b.Loop() {
		if s.Refuse(t0, spillway.Call{}, 0, busy) == nil {
			b.Fatal("not refused")
		}
	}
}
