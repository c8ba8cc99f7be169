// Package thorough says how much the tests prove. `go test work` proves each thing with a few random seeds, within minutes. With
// -tags thorough, as in CI, the same tests take all seeds and rows, and those are compiled whose dependencies take a minute to
// compile. -short overrides it.
package thorough

import "testing"

// Enabled reports whether tests take all seeds and rows.
func Enabled() bool { return tagged && !testing.Short() }

// Seeds returns how many random seeds a test takes: all in a thorough test, few otherwise.
func Seeds(few, all uint64) uint64 {
	if Enabled() {
		return all
	}
	return few
}
