package attempts

import (
	"strconv"
	"testing"
	"time"
)

func BenchmarkObserve(b *testing.B) {
	h := must(b, Config{})
	now, i := t0, 0
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(10 * time.Microsecond)
		h.Observe(now, i&1)
		i++
	}
}

func BenchmarkObserveParallel(b *testing.B) {
	h := must(b, Config{})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		now := t0
		for pb.Next() {
			now = now.Add(10 * time.Microsecond)
			h.Observe(now, 0)
		}
	})
}

func BenchmarkDontRetry(b *testing.B) {
	h := must(b, Config{})
	for range 1000 {
		h.Observe(t0, 1)
	}
	b.ReportAllocs()
	for b.Loop() {
		h.DontRetry(t0)
	}
}

func BenchmarkCustomersObserve(b *testing.B) {
	table, err := NewCustomers(Config{}, 0)
	if err != nil {
		b.Fatal(err)
	}
	var names [256]string
	for i := range names {
		names[i] = "customer-" + strconv.Itoa(i)
	}
	now, i := t0, 0
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(10 * time.Microsecond)
		table.Observe(now, names[i%len(names)], 0)
		i++
	}
}
