//go:build race

package suite_test

const raceEnabled = true
