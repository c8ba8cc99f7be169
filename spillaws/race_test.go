//go:build race

package spillaws

// raceEnabled says that the race detector is on.
const raceEnabled = true
