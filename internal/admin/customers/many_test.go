package customers

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seed90641741/spillway/quota"
)

// BenchmarkTop is what the dashboard does each second with 100,000 customers.
func BenchmarkTop(b *testing.B) {
	all := make([]quota.CustomerStats, 100_000)
	for i := range all {
		all[i] = quota.CustomerStats{Customer: fmt.Sprintf("customer-%d", i*7919%100_000), Limit: 1, Rate: 1, Wants: float64(i), Debt: float64(i%97) / 97}
	}
	b.ReportAllocs()
	for b.Loop() {
		Top(Of("main", "web", all))
	}
}

// TestOfChoosesForTop: of many customers of several gates, what Of leaves out is nothing that Top would choose.
func TestOfChoosesForTop(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		var few, all []Customer
		for gate := range 3 {
			stats := make([]quota.CustomerStats, random.IntN(200))
			for i := range stats {
				x := &stats[i]
				*x = quota.CustomerStats{
					Customer: fmt.Sprint(gate, " ", i), Known: random.IntN(3) == 0, Unlisted: random.IntN(100) == 0,
					Debt: float64(random.IntN(4)) / 3, Wants: float64(random.IntN(4)), RejectedRate: float64(random.IntN(3)),
				}
				if random.IntN(20) == 0 {
					x.Debt, x.Wants, x.RejectedRate = math.NaN(), math.Inf(1), math.Inf(-1)
				}
				x.Classes[1].RejectedTotal = uint64(random.IntN(3))
				all = append(all, Of("main", "web", stats[i:i+1])...)
			}
			few = append(few, Of("main", "web", stats)...)
		}
		if got, want := Top(few), Top(all); !slices.Equal(got, want) {
			t.Fatalf("seed %d: %+v, want %+v", seed, got, want)
		}
	}
}
