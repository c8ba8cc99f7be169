// Package hints reads what answers say about when to try again, and what a rejection concerns.
package hints

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/seed90641741/spillway/fault"
)

// Max is the longest hint that is passed on. A server that asks for more is not believed any
// better than one that asks for this much, and no sum with it can overflow. How long a hint is
// waited for, the retry strategy decides.
const Max = 365 * 24 * time.Hour

// RetryAfter reads the header Retry-After of RFC 9110: seconds, or a date, which is compared with
// now. It reports false for text that is neither.
func RetryAfter(text string, now time.Time) (d time.Duration, ok bool) {
	if text == "" {
		return 0, false
	}
	if d, ok = Units(text, time.Second); ok {
		return d, true
	}
	when, err := http.ParseTime(strings.TrimSpace(text))
	if err != nil {
		return 0, false
	}
	return min(max(when.Sub(now), 0), Max), true
}

// SentAt returns when the answer with header h, received at now, was sent by the clock that a date in it also uses: its own Date
// (RFC 9110, section 6.6.1). A cache that adds an Age passes on an old Date, so that now is closer.
func SentAt(h http.Header, now time.Time) time.Time {
	if len(h["Age"]) > 0 || len(h["Date"]) == 0 {
		return now
	}
	if date, err := http.ParseTime(strings.TrimSpace(h["Date"][0])); err == nil {
		return date
	}
	return now
}

// Units returns the whole number in text times unit. RFC 9110, section 10.2.3,
// knows neither signs nor fractions. However long the number, the result is
// within Max.
func Units(text string, unit time.Duration) (time.Duration, bool) {
	n := 0
	for i := range len(text) {
		digit := text[i] - '0'
		if digit > 9 || i == shortNumber {
			return unitsInLong(text, unit)
		}
		n = n*10 + int(digit)
	}
	return min(time.Duration(n)*unit, Max), text != ""
}

// shortNumber is how many digits a number has at most that cannot overflow, in hours.
const shortNumber = 6

// unitsInLong is Units for any text: with spaces around the number, or with many digits.
func unitsInLong(text string, unit time.Duration) (time.Duration, bool) {
	text = strings.TrimSpace(text)
	var d time.Duration
	for i := range len(text) {
		digit := text[i] - '0'
		if digit > 9 {
			return 0, false
		}
		d = min(d*10+time.Duration(digit)*unit, Max)
	}
	return d, text != ""
}

// Pushback reads the pushback of gRPC, in milliseconds. gRFC A6 takes what is no number, or a
// negative one, for "do not retry", which Pushback reports as false. So is a number with a sign
// that it does not need: of "-0" the server can have meant either.
func Pushback(values []string) (d time.Duration, ok bool) {
	if len(values) != 1 || strings.ContainsAny(values[0], "+-") {
		return 0, false
	}
	return Milliseconds(values[0])
}

// Milliseconds reads a number of milliseconds that an int64 can hold and that is not negative.
func Milliseconds(text string) (d time.Duration, ok bool) {
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms < 0 {
		return 0, false
	}
	return time.Duration(min(ms, Max.Milliseconds())) * time.Millisecond, true
}

// Scope adds to the failure of a call the scope that the server names of an overload. A rejection
// of a customer keeps its scope, and text that is no scope is ignored.
func Scope(f *fault.Failure, text string) {
	s := fault.ParseScope(text)
	if s == fault.ScopeUnknown || !f.Overload || f.Scope == fault.ScopeCustomer {
		return
	}
	f.Scope = s
	f.DontRetry = f.DontRetry || s == fault.ScopeService
	f.Unprocessed = f.Unprocessed || s == fault.ScopeTask
}
