package accounts

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/seed90641741/spillway"
)

// TestPlaces has many goroutines end requests of more places than a Book names. The places add up
// to the accounts, and only the first ones are named.
func TestPlaces(t *testing.T) {
	var b Book
	first := make([]*Counts, 2*MaxPlaces)
	for i := range first { // as listeners do, one after the other
		first[i] = b.At(place(i))
	}
	var all sync.WaitGroup
	for seed := range uint64(4) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, 2))
			for range 5000 {
				n := r.IntN(2*MaxPlaces + 10) // 10 that are new
				b.Begin()
				b.End(End{Account: Account(r.IntN(Count)), Reason: Reason(r.IntN(Reasons)), Criticality: spillway.Critical, At: b.At(place(n))})
			}
		})
	}
	all.Wait()
	for range 7 {
		b.Begin()
		b.End(End{Account: Served})
	}
	total, got := b.Read(), b.Places()
	if len(got) != MaxPlaces+2 || got[0].Place != (Place{}) || got[0].Ended[Served] != 7 {
		t.Fatalf("%d places, the first is %+v", len(got), got[0])
	}
	var ended [Count]uint64
	var rejected [Reasons]uint64
	for i, p := range got {
		if i > 0 && p.Place == got[i-1].Place {
			t.Errorf("%+v twice", p.Place)
		}
		for a, n := range p.Ended {
			ended[a] += n
		}
		for reason, n := range p.Rejected {
			rejected[reason] += n
		}
	}
	for a, n := range ended {
		if want := total.Of(Account(a)); n != want {
			t.Errorf("%v: %d at all places, want %d", Account(a), n, want)
		}
	}
	if rejected != total.Rejected || total.Sum() != 20_007 || total.Offered != 20_007 {
		t.Errorf("%v, want %v; %d ended of %d", rejected, total.Rejected, total.Sum(), total.Offered)
	}
	if b.At(place(0)) != first[0] || b.At(place(MaxPlaces-1)) != first[MaxPlaces-1] || b.At(place(MaxPlaces)) != b.At(Elsewhere) {
		t.Error("a place has other counts than before")
	}
	if n := testing.AllocsPerRun(100, func() { b.At(place0); b.At(placeBeyond) }); n != 0 {
		t.Errorf("%v allocations for places that are known", n)
	}
}

var place0, placeBeyond = place(0), place(1000)

func place(n int) Place { return Place{"main", "web", fmt.Sprint("/", n)} }
