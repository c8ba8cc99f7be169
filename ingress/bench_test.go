package ingress

import (
	"context"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ratelimit"
)

func BenchmarkAdmit(b *testing.B) {
	s, err := New(Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		p, _ := s.Enter(ctx, spillway.Call{}, ratelimit.Caller{})
		p.Done(spillway.OutcomeServed)
	}
}

func BenchmarkReject(b *testing.B) {
	s, err := New(Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	past := time.Now().Add(-time.Hour)
	b.ReportAllocs()
	for b.Loop() {
		s.Reject(spillway.Call{Deadline: past}, ratelimit.Caller{})
	}
}
