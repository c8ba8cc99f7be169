//go:build !race

package attempts

const raceEnabled = false
