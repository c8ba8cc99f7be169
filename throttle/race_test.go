//go:build race

package throttle_test

// raceEnabled says that the race detector is on. Scenarios run on one goroutine:
// it has nothing to find there and makes them twenty times slower.
const raceEnabled = true
