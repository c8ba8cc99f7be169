//go:build race

package shed_test

// raceEnabled says that the race detector is on: it allocates by itself, and
// scenarios run on one goroutine, where it has nothing to find.
const raceEnabled = true
