package concurrency

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/seed90641741/spillway/internal/invalid"
)

// mostKeys is the highest allowed number of entries in MaxInFlightByKey, and the highest value of
// MaxKeys.
const mostKeys = 4096

// checkCaps checks MaxInFlightByKey.
func (c *Config) checkCaps() error {
	if len(c.MaxInFlightByKey) > mostKeys {
		return invalid.Field("concurrency", "MaxInFlightByKey", len(c.MaxInFlightByKey), "at most %d keys", mostKeys)
	}
	for _, name := range slices.Sorted(maps.Keys(c.MaxInFlightByKey)) {
		if n := c.MaxInFlightByKey[name]; n < 1 || n > math.MaxInt32 {
			return invalid.Field("concurrency", fmt.Sprintf("MaxInFlightByKey[%q]", name), n, "1 to %d", math.MaxInt32)
		}
	}
	return nil
}

// cap applies MaxInFlightByKey: each key in it gets its cap, and an entry in the table that other
// keys cannot take.
func (l *Limiter) cap() {
	for i := range l.keys {
		l.keys[i].max = 0
	}
	l.most = l.config.MaxKeys + len(l.config.MaxInFlightByKey)
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(l.config.MaxInFlightByKey)) {
		if slot, ok := l.index[name]; ok {
			l.keys[slot].max = l.config.MaxInFlightByKey[name]
		} else {
			missing = append(missing, name)
		}
	}
	spare := l.spare(len(l.keys) + len(missing) - 1 - l.most)
	for _, name := range missing {
		slot := len(l.keys)
		if len(spare) > 0 {
			slot, spare = spare[0], spare[1:]
		}
		l.put(slot, l.newKey(name))
		l.keys[slot].max = l.config.MaxInFlightByKey[name]
	}
}

// decides reports whether a key's own limit or cap decides on its requests, and not the limit of
// all keys. A cap that was reached in the last ten seconds still decides. So the recent rejections
// of the key count for its next request, even if one of its requests has just ended.
func (l *Limiter) decides(slot int) bool {
	k := &l.keys[slot]
	if k.spare() <= 0 {
		k.full = l.at + memory
		return true
	}
	return l.rule(k) == k.limit && (l.limits(k) || l.at < k.full)
}

// spare returns how many more requests the cap of a key admits, +Inf without a cap. Parked requests
// count against the cap.
func (k *key) spare() float64 {
	if k.max == 0 {
		return math.Inf(1)
	}
	return float64(k.max - k.flight.working() - k.flight.parked)
}
