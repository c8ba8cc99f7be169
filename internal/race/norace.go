//go:build !race

// Package race says whether the race detector is on. It allocates by itself, and is many times
// slower: tests that count allocations are wrong with it, and in what runs on one goroutine it has
// nothing to find.
package race

// Enabled is set if the race detector is on.
const Enabled = false
