package spillaws

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxHint is the longest hint that is passed on, so that no sum with it can
// overflow. How long a hint is waited for, the strategy decides.
const maxHint = 365 * 24 * time.Hour

// hintOf returns how long an answer asks to be left alone: in X-Amz-Retry-After,
// in milliseconds, or if standard is set in Retry-After, in seconds or as a date.
// What is not valid is ignored.
func hintOf(h http.Header, standard bool) (d time.Duration, ok bool) {
	if d, ok = units(h.Get("X-Amz-Retry-After"), time.Millisecond); ok || !standard {
		return d, ok
	}
	text := h.Get("Retry-After")
	if text == "" {
		return 0, false
	}
	if d, ok = units(text, time.Second); ok {
		return d, true
	}
	when, err := http.ParseTime(strings.TrimSpace(text))
	if err != nil {
		return 0, false
	}
	return min(max(when.Sub(sentAt(h)), 0), maxHint), true
}

// sentAt returns when the answer was sent by the clock of the sender, which
// a date in it also uses, or else the time here.
func sentAt(h http.Header) time.Time {
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return time.Now()
	}
	return date
}

// units returns the number in text, which must not be negative, times unit.
func units(text string, unit time.Duration) (time.Duration, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n < 0 {
		return 0, false
	}
	return min(time.Duration(min(n, int64(maxHint/unit)))*unit, maxHint), true
}

// refuses reports whether an answer says "overloaded; don't retry".
func refuses(h http.Header) bool {
	return strings.EqualFold(strings.TrimSpace(h.Get("X-Should-Retry")), "false")
}
