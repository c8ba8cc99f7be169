//go:build race

package retry_test

// raceEnabled says that the race detector is on.
const raceEnabled = true
