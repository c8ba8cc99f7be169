package frequent

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestRowsDoNotFall: while keys come and go, no row falls as long as its key has it, nor does the sum of all others, and together they are all
// events. A key that gets its row starts at zero but for what it had since the last time.
func TestRowsDoNotFall(t *testing.T) {
	for _, part := range []uint64{0, 20} {
		r, x := rand.New(rand.NewPCG(5, part)), NewRows(4, part)
		n, before, last := uint64(0), map[string]uint64{}, uint64(0)
		given := 0
		for round := range 2000 {
			for range r.IntN(40) {
				key := fmt.Sprint("key ", (round/50+r.IntN(6))%30)
				if r.IntN(3) == 0 {
					key = fmt.Sprint("once ", r.Uint64())
				}
				x.Add(key, uint8(r.IntN(2)))
				n++
			}
			rows, others := x.Read()
			sum, now := others, map[string]uint64{}
			for _, c := range rows {
				k := fmt.Sprint(c.Key, c.Tag)
				sum, now[k] = sum+c.Count, c.Count
				if was, had := before[k]; !had {
					given++
				} else if c.Count < was {
					t.Errorf("round %d: the row of %q falls from %d to %d", round, k, was, c.Count)
				}
			}
			if sum != n {
				t.Fatalf("round %d: the sum is %d, want %d", round, sum, n)
			}
			if others < last {
				t.Fatalf("round %d: the sum of all others falls from %d to %d", round, last, others)
			}
			before, last = now, others
		}
		if given < 8 {
			t.Errorf("%d rows were given, want several", given)
		}
	}
}

// TestFirstRows: all events until the first Read are in the rows.
func TestFirstRows(t *testing.T) {
	x := NewRows(2, 0)
	for i, key := range []string{"a", "b", "c"} {
		for range 5 - i {
			x.Add(key, 0)
		}
	}
	rows, others := x.Read()
	if len(rows) != 2 || rows[0].Count != 5 || rows[1].Count != 4 || others != 3 {
		t.Errorf("%v, others %d", rows, others)
	}
	for range 10 {
		x.Add("c", 0)
	}
	if rows, others = x.Read(); rows[0] != (Count{"c", 0, 10}) || rows[1].Count != 5 || others != 7 {
		t.Errorf("after c is first: %v, others %d", rows, others)
	}
}
