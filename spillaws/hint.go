package spillaws

import (
	"net/http"
	"strings"
	"time"

	"github.com/seed90641741/spillway/internal/hints"
)

// hintOf returns how long an answer asks to be left alone: in X-Amz-Retry-After,
// in milliseconds, or if standard is set in Retry-After, in seconds or as a date.
// What is not valid is ignored.
func hintOf(h http.Header, standard bool) (d time.Duration, ok bool) {
	if d, ok = hints.Milliseconds(strings.TrimSpace(h.Get("X-Amz-Retry-After"))); ok || !standard {
		return d, ok
	}
	return hints.RetryAfter(h.Get("Retry-After"), hints.SentAt(h, time.Now()))
}

// rejects reports whether an answer says "overloaded; don't retry".
func rejects(h http.Header) bool {
	return strings.EqualFold(strings.TrimSpace(h.Get("X-Should-Retry")), "false")
}
