package spacesaving

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

func table(t testing.TB, n int) *Table {
	t.Helper()
	x, err := New(n)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestNew(t *testing.T) {
	for _, n := range []int{-1, 0, MaxEntries + 1} {
		if _, err := New(n); err == nil {
			t.Errorf("%d: no error", n)
		}
	}
}

// TestBounds compares with exact counts of random streams of several shapes: every key
// with more than n/m events is there, no count is above the truth or more than n/m
// below it, and the sum is n.
func TestBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, row := range []struct {
		name   string
		keys   int
		zipf   float64 // 0: all keys are equally likely
		size   int
		events int
	}{
		{"fewer keys than entries", 10, 0, 16, 5_000},
		{"uniform", 10_000, 0, 16, 50_000},
		{"skewed", 100_000, 1.2, 20, 50_000},
		{"very skewed", 100_000, 2, 8, 50_000},
		{"one entry", 3, 0, 1, 1_000},
	} {
		zipf := rand.NewZipf(r, max(row.zipf, 1.1), 1, uint64(row.keys-1))
		x, truth := table(t, row.size), make(map[string]uint64)
		for range row.events {
			n := uint64(r.IntN(row.keys))
			if row.zipf > 0 {
				n = zipf.Uint64()
			}
			key := fmt.Sprint("key", n)
			x.Add(key, 0)
			truth[key]++
		}
		all, sum := x.Read()
		most := uint64(row.events / row.size)
		got := make(map[string]uint64)
		for _, c := range all {
			got[c.Key] = c.Count
			sum += c.Count
		}
		if sum != uint64(row.events) || len(got) != min(row.size, len(truth)) {
			t.Errorf("%s: sum %d of %d, %d keys", row.name, sum, row.events, len(got))
		}
		for key, want := range truth {
			n, in := got[key]
			if n > want || want > most && !in || in && n+most < want {
				t.Errorf("%s: %s has %d, in truth %d, at most %d less", row.name, key, n, want, most)
			}
		}
	}
}

// TestFlood has a heavy key among keys that come once each.
func TestFlood(t *testing.T) {
	x := table(t, 10)
	for i := range 100_000 {
		x.Add(fmt.Sprint("once", i), 0)
		if i%5 == 0 {
			x.Add("heavy", 3)
		}
	}
	all, others := x.Read()
	var heavy uint64
	for _, c := range all {
		if c.Key == "heavy" && c.Tag == 3 {
			heavy = c.Count
		}
		others += c.Count
	}
	if heavy < 20_000-12_000 || others != 120_000 {
		t.Errorf("heavy %d, all %d", heavy, others)
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
		x := table(t, 2)
		x.Add(key, 1)
		all, _ := x.Read()
		if len(all) != 1 || all[0].Key != want || !utf8.ValidString(all[0].Key) {
			t.Errorf("%.80q: got %+v, want %q", key, all, want)
		}
	}
	x := table(t, 4) // keys that are told apart and read alike
	x.Add(long+"1", 0)
	x.Add(long+"2", 0)
	x.Add(long+"2", 1)
	if all, _ := x.Read(); len(all) != 2 || all[0].Count != 2 || all[1].Count != 1 {
		t.Errorf("got %v", all)
	}
}

func TestAllocs(t *testing.T) {
	x := table(t, MaxEntries)
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
	for _, n := range []int{10, 20, 64} {
		b.Run(fmt.Sprint("new key, entries=", n), func(b *testing.B) {
			x := table(b, n)
			i := 0
			for b.Loop() {
				i++
				x.Add(keys[i%len(keys)], 0)
			}
		})
		b.Run(fmt.Sprint("same key, entries=", n), func(b *testing.B) {
			x := table(b, n)
			for b.Loop() {
				x.Add("one", 0)
			}
		})
	}
}
