package concurrency

import (
	"cmp"
	"slices"
	"time"
)

// table has a place for each of some keys, and one for all others.
type table struct {
	keys     []key          // the first is for all without a place
	index    map[string]int // the places of the others
	most     int            // of these
	latest   int            // the place that was last looked up
	full     time.Duration  // no place is free before then
	nameless int            // requests of keys without a place, since one of these got one
	swapped  time.Duration  // then
}

// put gives a place to a key. It may be that of another key, which loses it, or one more than there are.
func (t *table) put(slot int, k key) {
	if slot == len(t.keys) {
		t.keys = append(t.keys, k)
	} else {
		delete(t.index, t.keys[slot].name)
		t.keys[slot] = k
	}
	t.index[k.name] = slot
}

// vacant returns a place for a new key: a free one, or that of an unused key, or 0.
func (t *table) vacant(at time.Duration) int {
	if len(t.keys) <= t.most {
		return len(t.keys)
	}
	return t.unused(at)
}

// unused returns the place of the key that has had no request for the longest time, 0 for none. That must be a minute, but
// ten times a second, after 64 requests of keys without a place: one that has many of them gets a place soon, whatever
// the number of names. After a search without a result it waits a second, so that many names cost little.
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

// spare returns the places of up to n keys that nothing holds, those first that were unused the longest: without it the
// places of keys that leave MaxByKey would add up.
func (t *table) spare(n int) (slots []int) {
	for i := 1; i < len(t.keys) && n > 0; i++ {
		if k := &t.keys[i]; k.held == 0 && k.max == 0 {
			slots = append(slots, i)
		}
	}
	slices.SortFunc(slots, func(a, b int) int { return cmp.Compare(t.keys[a].used, t.keys[b].used) })
	return slots[:max(0, min(n, len(slots)))]
}
