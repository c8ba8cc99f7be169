// Package spacesaving finds the most frequent keys of a stream in a fixed amount of memory:
// the Space-Saving algorithm of Metwally, Agrawal and El Abbadi, "Efficient Computation
// of Frequent and Top-k Elements in Data Streams" (ICDT 2005), section 3.1.
//
// A table of m entries holds every key that has more than n/m of the n events. A new key
// takes the place of the entry with the lowest rank, and inherits that rank. The rank of a
// key is at most n/m above its true count.
//
// Reported are not the ranks but the events that were counted while the key was in the
// table: never more than the truth, and at most n/m less. The events of keys that have
// left the table are in Others, so that the sum of all counts is always n. A key that
// comes back starts at zero, as a counter does that was reset.
package spacesaving

import (
	"errors"
	"hash/maphash"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	// MaxEntries bounds the size of a table, which is searched from end to end.
	MaxEntries = 64
	// MaxKey is how many bytes of a key are kept. Keys with the same beginning are kept
	// apart, and their counts are added when they are read.
	MaxKey = 64
)

// A Table counts the most frequent keys, each with a tag: a small number that separates events
// of one key, such as the reason of a rejection. It is safe for concurrent use.
// Add allocates nothing and keeps no reference to its key.
type Table struct {
	seed maphash.Seed

	mu      sync.Mutex
	entries []entry
	used    int
	others  uint64
}

type entry struct {
	hash  uint64
	rank  uint64 // by which the entry that has to leave is chosen
	count uint64
	tag   uint8
	size  uint8
	key   [MaxKey]byte
}

// New returns a table of n entries, or an error if n is not 1 to MaxEntries.
func New(n int) (*Table, error) {
	if n < 1 || n > MaxEntries {
		return nil, errors.New("must be 1 to 64")
	}
	return &Table{seed: maphash.MakeSeed(), entries: make([]entry, n)}, nil
}

// Add counts one event.
func (t *Table) Add(key string, tag uint8) {
	hash := maphash.String(t.seed, key)
	hash ^= uint64(tag) * 0x9e3779b97f4a7c15 // the golden ratio: spreads the tags over all bits
	t.mu.Lock()
	defer t.mu.Unlock()
	least := 0
	for i := range t.entries[:t.used] {
		e := &t.entries[i]
		if e.hash == hash && e.tag == tag {
			e.rank++
			e.count++
			return
		}
		if e.rank < t.entries[least].rank {
			least = i
		}
	}
	if t.used < len(t.entries) {
		least = t.used
		t.used++
	}
	e := &t.entries[least]
	t.others += e.count
	e.hash, e.tag, e.count = hash, tag, 1
	e.rank++
	e.size = uint8(copy(e.key[:], key))
}

// A Count is a key, its tag, and its number of events.
type Count struct {
	Key   string
	Tag   uint8
	Count uint64
}

// Read returns the counts of all keys in the table, and the events of all other keys
// together. Keys are valid UTF-8; a key that was cut ends with an ellipsis.
func (t *Table) Read() (all []Count, others uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	type place struct {
		key string
		tag uint8
	}
	at := make(map[place]int, t.used)
	for i := range t.entries[:t.used] {
		e := &t.entries[i]
		p := place{text(e.key[:e.size]), e.tag}
		n, ok := at[p]
		if !ok {
			n, all = len(all), append(all, Count{Key: p.key, Tag: p.tag})
			at[p] = n
		}
		all[n].Count += e.count
	}
	return all, t.others
}

// Text returns a key as Read does: cut to MaxKey bytes, and valid UTF-8.
func Text(key string) string { return text([]byte(key[:min(len(key), MaxKey)])) }

// text returns a kept key as it is shown.
func text(key []byte) string {
	s := string(key)
	if len(key) == MaxKey {
		for i := 1; i <= utf8.UTFMax && !utf8.ValidString(s); i++ { // a rune that was cut
			s = string(key[:len(key)-i])
		}
		if !utf8.ValidString(s) {
			s = string(key)
		}
		s += "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
