package budget_test

import (
	"testing"

	"github.com/seed90641741/spillway/budget"
)

// BenchmarkDepositFull is what a success costs while the backend is healthy.
func BenchmarkDepositFull(b *testing.B) {
	bucket := must(budget.New(budget.Config{}))
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			bucket.Deposit("", 1)
		}
	})
}

func BenchmarkDeposit(b *testing.B) {
	bucket := must(budget.New(budget.Config{Capacity: 1e9, Empty: true}))
	b.ReportAllocs()
	for b.Loop() {
		bucket.Deposit("", .1)
	}
}

func BenchmarkWithdrawDeposit(b *testing.B) {
	bucket := must(budget.New(budget.Config{}))
	b.ReportAllocs()
	for b.Loop() {
		bucket.Withdraw(t0, "", 5)
		bucket.Deposit("", 5)
	}
}

func BenchmarkWithdrawRejected(b *testing.B) {
	bucket := must(budget.New(budget.Config{Empty: true}))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, ok := bucket.Withdraw(t0, "", 5); ok {
			b.Fatal("paid")
		}
	}
}

func BenchmarkEndpointsDeposit(b *testing.B) {
	endpoints := must(budget.NewEndpoints(budget.EndpointsConfig{}))
	keys := []string{"10.0.0.1:443", "10.0.0.2:443", "10.0.0.3:443"}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			endpoints.Deposit(keys[i%len(keys)], 1)
		}
	})
}
