//go:build race

package ratelimit

// raceEnabled says that the race detector is on. It allocates, and makes scenarios
// on one goroutine, where it has nothing to find, many times slower.
const raceEnabled = true
