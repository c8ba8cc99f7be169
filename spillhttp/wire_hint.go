package spillhttp

import (
	"net/http"
	"strings"
	"time"
)

// maxHint is the longest hint that is passed on. A server that asks for more
// is not believed any better than one that asks for this much, and no sum with
// it can overflow.
const maxHint = 365 * 24 * time.Hour

// retryAfter returns how long the answer with header h, received at now, asks to
// be left alone. The finer Retry-After-Ms is believed before Retry-After. What
// is not valid is ignored.
func retryAfter(h http.Header, now time.Time) (d time.Duration, ok bool) {
	if d, ok = units(first(h, headerRetryAfterMs), time.Millisecond); ok {
		return d, true
	}
	text := first(h, headerRetryAfter)
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
	return min(max(when.Sub(now), 0), maxHint), true
}

// units returns the whole number in text times unit. RFC 9110, section 10.2.3,
// knows neither signs nor fractions. However long the number, the result is
// within maxHint.
func units(text string, unit time.Duration) (time.Duration, bool) {
	n := 0
	for i := range len(text) {
		digit := text[i] - '0'
		if digit > 9 || i == shortNumber {
			return unitsInLong(text, unit)
		}
		n = n*10 + int(digit)
	}
	return min(time.Duration(n)*unit, maxHint), text != ""
}

// shortNumber is how many digits a number has at most that cannot overflow, in hours.
const shortNumber = 6

// unitsInLong is units for any text: with spaces around the number, or with many digits.
func unitsInLong(text string, unit time.Duration) (time.Duration, bool) {
	text = strings.TrimSpace(text)
	var d time.Duration
	for i := range len(text) {
		digit := text[i] - '0'
		if digit > 9 {
			return 0, false
		}
		d = min(d*10+time.Duration(digit)*unit, maxHint)
	}
	return d, text != ""
}
