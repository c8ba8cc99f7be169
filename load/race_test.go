//go:build race

package load

// raceEnabled says that the race detector is on, which allocates by itself.
const raceEnabled = true
