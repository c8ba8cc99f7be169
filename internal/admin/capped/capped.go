// Package capped has a map for counters, whose keys have no bound of their own.
package capped

import (
	"maps"
	"sync"
	"sync/atomic"
)

// A Map has a value for each key, up to a number of keys. Nothing is ever removed. The zero Map is
// ready for use. It is safe for concurrent use.
type Map[K comparable, V any] struct {
	mu  sync.Mutex               // held while a key is added
	all atomic.Pointer[map[K]*V] // is replaced, and not changed
}

// Get returns the value of a key, which begins as zero. New keys beyond the first most share the value
// of other. It allocates, and takes a lock, for the first call of a key only.
func (m *Map[K, V]) Get(key K, most int, other K) *V {
	all := m.All()
	if v := all[key]; v != nil {
		return v
	}
	if len(all) > most {
		return all[other]
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	more := make(map[K]*V)
	maps.Copy(more, m.All())
	if more[key] == nil && len(more) >= most {
		key = other
	}
	if more[key] == nil {
		more[key] = new(V)
		m.all.Store(&more)
	}
	return more[key]
}

// All returns the values by their keys, for reading only.
func (m *Map[K, V]) All() map[K]*V {
	if all := m.all.Load(); all != nil {
		return *all
	}
	return nil
}
