//go:build race

package ingress

// raceEnabled says that the race detector is on, which allocates by itself.
const raceEnabled = true
