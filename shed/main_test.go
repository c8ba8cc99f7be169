package shed_test

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain collects garbage less often: a scenario makes much of it and keeps so little that the
// collector would run most of the time.
func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(800)
	}
	os.Exit(m.Run())
}
