//go:build !race

package awstest

const raceEnabled = false
