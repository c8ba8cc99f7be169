//go:build race

package mongoproxy

const raceEnabled = true
