//go:build race

package budget_test

// raceEnabled says that the race detector is on.
const raceEnabled = true
