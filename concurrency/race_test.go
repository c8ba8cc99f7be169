//go:build race

package concurrency

// raceEnabled says that the race detector is on, which allocates.
const raceEnabled = true
