//go:build !race

package spillxds_test

const raceEnabled = false
