package spillhttp

import (
	"net/http"
	"time"
)

// RetryAfterForTest is how long an answer asks to wait.
func RetryAfterForTest(h http.Header, now time.Time) time.Duration {
	d, _ := retryAfter(h, now)
	return d
}
