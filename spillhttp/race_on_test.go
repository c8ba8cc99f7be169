//go:build race

package spillhttp

const raceEnabled = true
