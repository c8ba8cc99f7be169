package spilltest

import "time"

// SetPatience sets how long clauses wait.
func SetPatience(d time.Duration) { patience = d }
