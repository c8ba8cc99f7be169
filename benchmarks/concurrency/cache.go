package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
)

// A cache keeps oracles in a file, so that repeated runs take less time. The key
// of a scenario includes a digest of all its arrivals and answers without a
// limit: a changed scenario or simulator gets a new key. A nil cache is empty.
type cache struct {
	path  string
	known map[string]oracle
}

// cacheFile is the file of the option -cache.
func cacheFile() string { return filepath.Join(os.TempDir(), "spillway-concurrency-oracles.json") }

// openCache reads a cache. A file that cannot be read counts as empty.
func openCache(path string) *cache {
	c := &cache{path: path, known: map[string]oracle{}}
	if b, err := os.ReadFile(path); err == nil && json.Unmarshal(b, &c.known) != nil {
		c.known = map[string]oracle{}
	}
	return c
}

func key(r *row, s seeds) string {
	h := fnv.New64a()
	fmt.Fprint(h, r.Name, r.digest, r.candidates(), s)
	return fmt.Sprintf("%s %x", r.Name, h.Sum64())
}

// get sets the oracle of a row and reports whether the cache has it.
func (c *cache) get(r *row, s seeds) bool {
	if c == nil {
		return false
	}
	o, ok := c.known[key(r, s)]
	if ok {
		r.oracle = o
	}
	return ok
}

// put stores the oracles of all rows, unless the file has no name. If it cannot be written, the next
// run computes them again.
func (c *cache) put(rows []*row, s seeds) {
	if c == nil || c.path == "" {
		return
	}
	for _, r := range rows {
		if r.Overload {
			c.known[key(r, s)] = r.oracle
		}
	}
	if b, err := json.MarshalIndent(c.known, "", "\t"); err == nil {
		_ = os.WriteFile(c.path, b, 0o600)
	}
}
