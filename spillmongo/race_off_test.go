//go:build !race

package spillmongo

const raceEnabled = false
