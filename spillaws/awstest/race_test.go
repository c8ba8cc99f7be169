//go:build race

package awstest

// raceEnabled says that the race detector is on.
const raceEnabled = true
