//go:build race

package spillxds_test

// raceEnabled says that allocations are not what they are without the detector.
const raceEnabled = true
