//go:build race

package race

// Enabled is set if the race detector is on.
const Enabled = true
