//go:build !race

package mongoproxy

const raceEnabled = false
