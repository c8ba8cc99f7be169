//go:build !race

package spillgrpc

const raceEnabled = false
