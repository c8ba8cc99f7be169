package shed

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seed90641741/spillway"
)

// What runs first and what is rejected first are the extremes of a naive model under random additions and removals.
func TestOrderOfWaiters(t *testing.T) {
	q, r := new(queue), rand.New(rand.NewPCG(1, 2))
	if q.highest() != -1 || q.lowest() != nil || q.oldest(0) != nil {
		t.Error("an empty queue has waiters")
	}
	var model []*Waiter
	for i := range uint64(20_000) {
		if r.IntN(2) == 0 || len(model) == 0 {
			w := &Waiter{arrived: i, order: orderOf(r.IntN(ranks), spillway.Progress(r.IntN(9)), spillway.Level(r.IntN(4)))}
			q.add(w)
			model = append(model, w)
		} else {
			at := r.IntN(len(model))
			q.remove(model[at])
			model = slices.Delete(model, at, at+1)
		}
		if len(model) == 0 {
			continue
		}
		runs := func(a, b *Waiter) int {
			return cmp.Or(cmp.Compare(b.order.group()%steps, a.order.group()%steps), cmp.Compare(a.arrived, b.arrived))
		}
		rejected := func(a, b *Waiter) int {
			return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(b.arrived, a.arrived))
		}
		group := slices.MaxFunc(model, rejected).order.group()
		others := func(w *Waiter) bool { return w.order.group() != group }
		highest := slices.DeleteFunc(slices.Clone(model), others)
		if q.n != len(model) || q.oldest(0) != slices.MinFunc(model, runs) || q.lowest() != slices.MinFunc(model, rejected) ||
			q.highest() != group || q.groups[group].oldest != highest[0] || q.groups[group].newest != highest[len(highest)-1] {
			t.Fatalf("step %d: %d waiters, want %d, or others are at the ends", i, q.n, len(model))
		}
	}
}

// Class comes before fair share, this before progress, and this before level.
func TestOrder(t *testing.T) {
	ascending := []order{
		orderOf(2, 255, 128), orderOf(3, 0, 0), orderOf(3, 0, 1), orderOf(3, 0, 128), orderOf(3, 1, 0), orderOf(3, 2, 1), orderOf(3, 4, 1), orderOf(4, 0, 0),
	}
	if !slices.IsSorted(ascending) || len(slices.Compact(ascending)) != 8 {
		t.Errorf("%v do not ascend", ascending)
	}
	if orderOf(3, 2, 9) != orderOf(3, 3, 9) || orderOf(3, 4, 9) != orderOf(3, 255, 9) {
		t.Error("progress has more than four steps")
	}
	if o := orderOf(7, 9, 100); o.rank() != 7 || o.class() != 3 || o.level() != 100 {
		t.Errorf("rank %d, class %d, level %d, want 7, 3, 100", o.rank(), o.class(), o.level())
	}
}

// A share of a rank that is rejected is the one with the lowest levels, and leaves out tasks that have begun.
func TestAmongTheRejected(t *testing.T) {
	half := func() float64 { return 0.5 }
	for _, row := range []struct {
		level    spillway.Level
		progress spillway.Progress
		share    float64
		want     bool
	}{
		{0, 0, 0.5, false}, {0, 0, 0.51, true}, {0, 0, 1, true}, {0, 0, 0, false},
		{1, 0, 0.003, false}, {1, 0, 0.004, true}, {128, 0, 0.99, false}, {128, 0, 0.997, true}, {64, 0, 0.5, true}, {65, 0, 0.5, false},
		{1, 1, 0.99, false}, {1, 1, 1, true},
	} {
		a := arrival{order: orderOf(4, row.progress, row.level)}
		if got := a.among(row.share, half); got != row.want {
			t.Errorf("%+v: %v", row, got)
		}
	}
}
