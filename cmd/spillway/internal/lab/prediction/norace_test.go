//go:build !race

package prediction

const raceEnabled = false
