//go:build !race

package spillhttp

const raceEnabled = false
