// Package thorough says how much the tests prove. `go test work` proves each thing with a few random seeds, within minutes. CI sets
// SPILLWAY_THOROUGH=1: the same tests then take all seeds and rows. -short overrides it.
package thorough

import (
	"os"
	"testing"
)

// Enabled reports whether tests take all seeds and rows. Call it within a test: go test knows then that the result depends on
// the environment, and does not take one from its cache that was made without.
func Enabled() bool { return os.Getenv("SPILLWAY_THOROUGH") != "" && !testing.Short() }

// Seeds returns how many random seeds a test takes: all in a thorough test, few otherwise.
func Seeds(few, all uint64) uint64 {
	if Enabled() {
		return all
	}
	return few
}
