//go:build !race

package spillaws

const raceEnabled = false
