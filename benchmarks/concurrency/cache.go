package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
)

// A cache keeps oracles in a file, for those who run the table again and again. What
// a scenario is called by includes a digest of all its arrivals and answers
// without a limit, so that a changed scenario or simulator is a new one. A nil
// cache keeps nothing.
type cache struct {
	path  string
	known map[string]oracle
}

// openCache reads the cache in the directory for temporary files. One that cannot be
// read is empty.
func openCache() *cache {
	c := &cache{path: filepath.Join(os.TempDir(), "spillway-concurrency-oracles.json"), known: map[string]oracle{}}
	if b, err := os.ReadFile(c.path); err == nil && json.Unmarshal(b, &c.known) != nil {
		c.known = map[string]oracle{}
	}
	return c
}

func key(r *row, s seeds) string {
	h := fnv.New64a()
	fmt.Fprint(h, r.Name, r.digest, r.candidates(), s)
	return fmt.Sprintf("%s %x", r.Name, h.Sum64())
}

// get fills in the oracle of a row, if it is known.
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

// put keeps the oracles of all rows. Without a file the next run works them out again.
func (c *cache) put(rows []*row, s seeds) {
	if c == nil {
		return
	}
	for _, r := range rows {
		if r.Overload {
			c.known[key(r, s)] = r.oracle
		}
	}
	if b, err := json.Marshal(c.known); err == nil {
		_ = os.WriteFile(c.path, b, 0o600)
	}
}
