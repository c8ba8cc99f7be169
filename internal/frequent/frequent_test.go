package frequent

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/seed90641741/spillway/internal/race"
)

// counts returns the counts of all keys in a table, and checks that everything adds up to n.
func counts(t *testing.T, x *Table, n int) map[string]uint64 {
	t.Helper()
	all, sum := x.Read(MaxEntries)
	got := make(map[string]uint64)
	for _, c := range all {
		got[c.Key] += c.Count
		sum += c.Count
	}
	if sum != uint64(n) {
		t.Errorf("the sum is %d, want %d", sum, n)
	}
	return got
}

// TestFewKeys: keys that fit into the table are counted exactly, however seldom they come.
func TestFewKeys(t *testing.T) {
	x, r := New(), rand.New(rand.NewPCG(1, 2))
	truth := make(map[string]uint64)
	for range 20_000 {
		key := fmt.Sprint("key", int(100*r.Float64()*r.Float64()))
		x.Add(key, 0)
		truth[key]++
	}
	if got := counts(t, x, 20_000); !maps.Equal(got, truth) || x.Error() != 0 {
		t.Errorf("got %v, want %v; error %d", got, truth, x.Error())
	}
}

// TestBounds compares with exact counts of random streams of several shapes: no count is above the truth, and at most
// 1 key in 100 (here 3, as chance decides) lacks more than Error, which is at most three times what the lowest rank of new keys makes it.
func TestBounds(t *testing.T) {
	race.SkipOneGoroutine(t)
	r := rand.New(rand.NewPCG(1, 2))
	for _, row := range []struct {
		name string
		zipf float64 // 0: all keys are equally likely
	}{{"uniform", 0}, {"skewed", 1.2}, {"very skewed", 2}} {
		const keys, events, tables = 20_000, 100_000, 3
		zipf := rand.NewZipf(r, max(row.zipf, 1.1), 1, keys-1)
		frequent, missed, most := 0, 0, uint64(0)
		for range tables {
			x, truth := New(), make(map[string]uint64)
			for range events {
				n := uint64(r.IntN(keys))
				if row.zipf > 0 {
					n = zipf.Uint64()
				}
				key := fmt.Sprint("key", n)
				x.Add(key, 0)
				truth[key]++
			}
			got := counts(t, x, events)
			most = max(most, x.Error())
			for key, want := range truth {
				if got[key] > want {
					t.Errorf("%s: %s has %d, in truth %d", row.name, key, got[key], want)
				}
				if want <= x.Error() {
					continue
				}
				frequent++
				if got[key]+x.Error() < want {
					missed++
				}
			}
		}
		t.Logf("%s: %d keys have more than the error of %d, %d of them lack more", row.name, frequent, most, missed)
		if missed > max(1, 3*frequent/100) || float64(most) > 3*errorFactor*math.Sqrt(events/256) {
			t.Errorf("%s: of %d keys %d lack more than the error, which is up to %d", row.name, frequent, missed, most)
		}
	}
}

// TestInventedNames: a client that invents names cannot push out a customer that has more events than each of them,
// whether it sends few names often, or each name once or a few times. In a table with room for ten keys that lets each
// new key in, the first customer had one event.
func TestInventedNames(t *testing.T) {
	race.SkipOneGoroutine(t)
	for _, row := range []struct {
		names, each int
		real        int // events of the customer
		least       uint64
	}{
		{30, 41, 68, 68},
		{300, 41, 100, 50},
		{100_000, 1, 500, 200},
		{20_000, 5, 500, 200},
		{1_000_000, 1, 1000, 400},
	} {
		x, r := New(), rand.New(rand.NewPCG(1, 2))
		flood := row.names * row.each
		left := row.real
		for i := range flood { // the names in turn, which is the order that lasts longest
			x.Add(fmt.Sprint("invented ", i%row.names), 0)
			if r.IntN(flood-i) < left {
				x.Add("customer", 3)
				left--
			}
		}
		top, others := x.Read(10)
		for _, c := range top {
			others += c.Count
		}
		t.Logf("%d names: %v, at most %d too low", row.names, top[0], x.Error())
		if top[0].Key != "customer" || top[0].Tag != 3 || top[0].Count < row.least || others != uint64(flood+row.real-left) {
			t.Errorf("%d names with %d each: the first is %v, all are %d", row.names, row.each, top[0], others)
		}
	}
}

// TestAfterAFlood: a customer that comes after a flood of invented names is found, too.
func TestAfterAFlood(t *testing.T) {
	race.SkipOneGoroutine(t)
	x := New()
	for i := range 200_000 {
		x.Add(fmt.Sprint("invented ", i), 0)
	}
	for range 1000 {
		x.Add("customer", 0)
	}
	if top, _ := x.Read(1); top[0].Key != "customer" || top[0].Count < 600 {
		t.Errorf("got %v", top)
	}
}

// TestOthersNeverFall: a metrics server takes a counter that falls for one of a new process.
func TestOthersNeverFall(t *testing.T) {
	race.SkipOneGoroutine(t)
	x, r := New(), rand.New(rand.NewPCG(1, 2))
	last := uint64(0)
	for i := range 5_000 {
		x.Add(fmt.Sprint("key", int(3000*r.Float64()*r.Float64())), 0)
		if i%7 != 0 {
			continue
		}
		top, others := x.Read(10)
		sum := others
		for _, c := range top {
			sum += c.Count
		}
		if others < last || sum != uint64(i+1) || len(top) > 10 {
			t.Fatalf("event %d: others %d after %d, sum %d", i, others, last, sum)
		}
		last = others
	}
}

// TestKeys has keys that are long, cut in a rune, or no text.
func TestKeys(t *testing.T) {
	long := strings.Repeat("x", MaxKey)
	for key, want := range map[string]string{
		"":                                  "",
		"a b\n":                             "a b\n",
		"\xff\xfe":                          "\uFFFD",
		long + "tail":                       long + "…",
		strings.Repeat("x", 63) + "é":       strings.Repeat("x", 63) + "…",
		strings.Repeat("\xf0", 2*MaxKey):    "\uFFFD…",
		strings.Repeat("x", 1<<20):          long + "…",
		strings.Repeat("\U0001F600", 1<<10): strings.Repeat("\U0001F600", 16) + "…",
	} {
		x := New()
		x.Add(key, 1)
		all, _ := x.Read(MaxEntries)
		if len(all) != 1 || all[0].Key != want || !utf8.ValidString(all[0].Key) {
			t.Errorf("%.80q: got %+v, want %q", key, all, want)
		}
	}
	x := New() // keys that are told apart and read alike
	x.Add(long+"1", 0)
	x.Add(long+"2", 0)
	x.Add(long+"2", 1)
	if all, _ := x.Read(MaxEntries); len(all) != 2 || all[0].Count != 2 || all[1].Count != 1 {
		t.Errorf("got %v", all)
	}
}

func TestAllocs(t *testing.T) {
	x := New()
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = strings.Repeat("customer", 20) + fmt.Sprint(i)
	}
	i := 0
	if n := testing.AllocsPerRun(5000, func() { i++; x.Add(keys[i%len(keys)], uint8(i)) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAdd(b *testing.B) {
	keys := make([]string, 1<<16)
	for i := range keys {
		keys[i] = fmt.Sprint("customer", i)
	}
	b.Run("new key", func(b *testing.B) {
		x := New()
		i := 0
		for b.Loop() {
			i++
			x.Add(keys[i%len(keys)], 0)
		}
	})
	b.Run("same key", func(b *testing.B) {
		x := New()
		for b.Loop() {
			x.Add("one", 0)
		}
	})
}

// TestConcurrentUse: no event is lost, whatever is counted and read at once.
func TestConcurrentUse(t *testing.T) {
	x := New()
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := range 2000 {
				x.Add(fmt.Sprint("key", i*(worker+1)), 0)
				if i%500 == 0 {
					x.Read(10)
					x.Error()
				}
			}
		})
	}
	all.Wait()
	counts(t, x, 4*2000)
}
