package concurrency

import (
	"cmp"
	"slices"
	"time"
)

// table has an entry for each of a bounded number of keys, and one for all other names.
type table struct {
	keys     []key          // entry 0 is for all names without their own
	index    map[string]int // index of each name in keys, without entry 0
	most     int            // highest number of entries, without entry 0
	latest   int            // index that was looked up last
	full     time.Duration  // no search for an unused entry before this time: the last one found none
	nameless int            // requests of names without an entry, since the time swapped
	swapped  time.Duration  // when such a name last had a chance to get an entry
}

// put stores a key at an index: in a new entry, or instead of another key.
func (t *table) put(slot int, k key) {
	if slot == len(t.keys) {
		t.keys = append(t.keys, k)
	} else {
		delete(t.index, t.keys[slot].name)
		t.keys[slot] = k
	}
	t.index[k.name] = slot
}

// vacant returns the index at which a new key can be put: a new entry, or the entry of an unused
// key. It returns 0 if both are missing.
func (t *table) vacant(at time.Duration) int {
	if len(t.keys) <= t.most {
		return len(t.keys)
	}
	return t.unused(at)
}

// unused returns the index of the key that has had no request for the longest time, at least a
// minute; if no key is unused, it returns 0. Ten times a second, after 64 requests of names without
// an entry, any open key without requests in flight counts as unused. So a name with many requests
// gets an entry soon, however many names exist. After a search without a result, the next one is a
// second later, so that many names cost little.
func (t *table) unused(at time.Duration) (slot int) {
	t.nameless++
	due := t.nameless >= 2*round && at-t.swapped >= lasting/10
	if !due && at < t.full {
		return 0
	}
	for i := 1; i < len(t.keys); i++ {
		k := &t.keys[i]
		free := k.held == 0 && k.max == 0 && (due && k.state == Open || at-k.used > 6*memory)
		if free && (slot == 0 || k.used < t.keys[slot].used) {
			slot = i
		}
	}
	if slot == 0 {
		t.full = at + time.Second
	}
	if due {
		t.nameless, t.swapped = 0, at
	}
	return slot
}

// spare returns the indexes of up to n keys without requests and without a cap, the longest unused
// first. Keys that enter MaxInFlightByKey get these entries; otherwise the entries of keys that
// leave MaxInFlightByKey would add up.
func (t *table) spare(n int) (slots []int) {
	for i := 1; i < len(t.keys) && n > 0; i++ {
		if k := &t.keys[i]; k.held == 0 && k.max == 0 {
			slots = append(slots, i)
		}
	}
	slices.SortFunc(slots, func(a, b int) int { return cmp.Compare(t.keys[a].used, t.keys[b].used) })
	return slots[:max(0, min(n, len(slots)))]
}
