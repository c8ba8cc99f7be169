package race

import "testing"

// SkipOneGoroutine skips a test if the race detector is on. It is for tests that run on one
// goroutine and take long with it.
func SkipOneGoroutine(tb testing.TB) {
	tb.Helper()
	if Enabled {
		tb.Skip("one goroutine: nothing for the race detector to find")
	}
}
