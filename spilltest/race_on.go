//go:build race

package spilltest

const raceEnabled = true
