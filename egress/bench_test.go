package egress_test

import (
	"context"
	"errors"
	"testing"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/inflight"
)

func BenchmarkSuccess(b *testing.B) {
	client := must(b, egress.Config{})
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if err := client.Do(ctx, spillway.Call{}, works); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSuccessParallel(b *testing.B) {
	client := must(b, egress.Config{})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		ctx := context.Background()
		for pb.Next() {
			_ = client.Do(ctx, spillway.Call{}, works)
		}
	})
}

func BenchmarkRejected(b *testing.B) {
	l, err := inflight.New(inflight.Config{MaxInFlight: 1})
	if err != nil {
		b.Fatal(err)
	}
	l.TryAcquire()
	client := must(b, egress.Config{InFlight: l})
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if err := client.Do(ctx, spillway.Call{}, works); !errors.Is(err, spillway.ErrRejected) {
			b.Fatal(err)
		}
	}
}
