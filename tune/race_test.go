//go:build race

package tune_test

// raceEnabled says that the race detector is on. It allocates, and makes scenarios
// on one goroutine, where it has nothing to find, many times slower.
const raceEnabled = true
