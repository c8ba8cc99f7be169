//go:build race

package spillmongo

const raceEnabled = true
