// Package frequent finds the most frequent keys of a stream in a fixed amount of memory.
//
// A table holds 512 keys in sets of 16, and counts each key that it holds exactly. The hash of a key says which set it
// belongs to. If the set is full, a new key may take the place of the key with the lowest rank, but only with a
// probability of 1/(rank+1), and then its rank is one higher: the randomized admission policy of Ben Basat, Chen,
// Einziger, Friedman and Kassner, "Randomized Admission Policy for Efficient Top-k, Frequency, and Volume Estimation"
// (IEEE/ACM Transactions on Networking 27, 2019).
//
// So a key that comes once rarely replaces one that comes often. Keys that come once each, n of them, raise
// the lowest rank to about the square root of n/256: 62 for a million. If each new key were let in (the Space-Saving
// algorithm), it would be n/512, and a client that invents names could push out every other one.
//
// Reported are the events that were counted while the key was in the table: never more than the truth. [Table.Error] is
// how many are missing. The events of all other keys are in one number, so that the sum of all counts is always n, and
// this number never falls. A key that comes back starts at zero, as a counter does that was reset.
package frequent

import (
	"cmp"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	// MaxEntries is how many keys a table holds.
	MaxEntries = sets * ways
	// MaxKey is how many bytes of a key are kept. Keys with the same beginning are kept
	// apart, and their counts are added when they are read.
	MaxKey = 64

	sets = 32
	ways = 16 // keys of a set; with 100 keys, the probability that one of the sets is too small is below 1e-5
)

// A Table counts the most frequent keys, each with a tag: a small number that separates events
// of one key, such as the reason of a rejection. It is safe for concurrent use; make one with [New].
// Add allocates nothing and keeps no reference to its key.
type Table struct {
	seed maphash.Seed

	mu     sync.Mutex
	random *rand.PCG // unknown to clients: who knows it can choose when to send a new key
	sets   [sets]set
	others uint64 // events of keys that are not in the table
}

type set struct {
	used   int
	hashes [ways]uint64
	ranks  [ways]uint64 // by which the entry that has to leave is chosen
	rest   [ways]entry
}

type entry struct {
	count uint64
	tag   uint8
	size  uint8
	key   [MaxKey]byte
}

// New returns an empty Table.
func New() *Table {
	return &Table{seed: maphash.MakeSeed(), random: rand.NewPCG(rand.Uint64(), rand.Uint64())}
}

// Add counts one event.
func (t *Table) Add(key string, tag uint8) {
	hash := maphash.String(t.seed, key)
	hash ^= uint64(tag) * 0x9e3779b97f4a7c15 // the golden ratio: spreads the tags over all bits
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &t.sets[hash%sets]
	least := 0
	for i, h := range s.hashes[:s.used] {
		if h == hash && s.rest[i].tag == tag {
			s.ranks[i]++
			s.rest[i].count++
			return
		}
		if s.ranks[i] < s.ranks[least] {
			least = i
		}
	}
	if s.used < ways {
		least = s.used
		s.used++
	} else if t.random.Uint64()%(s.ranks[least]+1) != 0 {
		t.others++
		return
	}
	e := &s.rest[least]
	t.others += e.count
	s.hashes[least] = hash
	s.ranks[least]++
	e.tag, e.count = tag, 1
	e.size = uint8(copy(e.key[:], key))
}

// errorFactor makes the error one that 99 of 100 keys do not exceed: a key has a rank that is not the lowest, once one
// of its events was let in, which happens within 4.6 times the rank with a probability of 1 - exp(-4.6).
const errorFactor = 5

// Error returns the error bound of a count: a count may be lower than the truth by this much. It is 0 while all keys fit into the table; otherwise
// chance decides, and 1 key in 100 may lack more. A key that is not in the table has at most that many events, likewise.
func (t *Table) Error() (most uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.others == 0 {
		return 0
	}
	for i := range t.sets {
		if s := &t.sets[i]; s.used == ways {
			most = max(most, errorFactor*(slices.Min(s.ranks[:])+1))
		}
	}
	return most
}

// A Count is a key, its tag, and its number of events.
type Count struct {
	Key   string
	Tag   uint8
	Count uint64
}

// Read returns the counts of the most frequent keys, at most n of them and the most frequent first, and the events of
// all other keys together. Keys are valid UTF-8; a key that was cut ends with an ellipsis.
func (t *Table) Read(n int) (top []Count, others uint64) {
	all, others := t.read()
	slices.SortFunc(all, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Tag, b.Tag))
	})
	n = min(n, len(all))
	for i := range all[n:] {
		others += all[n+i].Count
	}
	return all[:n], others
}

func (t *Table) read() (all []Count, others uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	type name struct {
		key string
		tag uint8
	}
	at := make(map[name]int)
	for i := range t.sets {
		s := &t.sets[i]
		for j := range s.rest[:s.used] {
			e := &s.rest[j]
			as := name{text(e.key[:e.size]), e.tag}
			k, ok := at[as]
			if !ok {
				k, all = len(all), append(all, Count{Key: as.key, Tag: as.tag})
				at[as] = k
			}
			all[k].Count += e.count
		}
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
