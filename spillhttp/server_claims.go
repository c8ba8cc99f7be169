package spillhttp

import (
	"bytes"
	"math"
	"net/http"
	"strings"
	"time"
)

// What a request says of itself is read from its header. Where it says several
// things, the one counts that gains it least: the lowest class, the shortest
// time, the most attempts. What is not valid says nothing. The headers of gRPC,
// whose calls are all POST requests, are looked for in those only: each look costs
// more than what else is decided.

// claimHeaders are those that are read below.
var claimHeaders = [...]string{
	headerCriticality, headerBaggage, headerDeadline, headerGRPCTimeout, headerAttempt, headerGRPCAttempts, headerSDKRequest,
}

// claimOf returns the name of a header that is read here in canonical form, or
// nothing for that of any other.
func claimOf(name []byte) string {
	for _, key := range &claimHeaders {
		if len(key) == len(name) && bytes.EqualFold(name, []byte(key)) {
			return key
		}
	}
	return ""
}

// attemptOf returns which attempt r says that it is, from 0.
func attemptOf(r *http.Request) (n int) {
	for _, v := range r.Header[headerAttempt] {
		n = max(n, count(v)-1)
	}
	if r.Method == http.MethodPost {
		for _, v := range r.Header[headerGRPCAttempts] {
			n = max(n, count(v))
		}
	}
	for _, v := range r.Header[headerSDKRequest] {
		for more := true; more; {
			var part string
			part, v, more = strings.Cut(v, ";")
			if key, value, _ := strings.Cut(part, "="); strings.TrimSpace(key) == "attempt" {
				n = max(n, count(value)-1)
			}
		}
	}
	return n
}

// count returns the whole number in text, however long, or 0.
func count(text string) int {
	n, _ := units(text, 1)
	return int(min(n, math.MaxInt32))
}

// timeoutOf returns how long r says that the caller will wait, or 0.
func timeoutOf(r *http.Request) (least time.Duration) {
	for _, v := range r.Header[headerDeadline] {
		d, _ := units(v, time.Millisecond)
		least = shorter(least, d)
	}
	if r.Method == http.MethodPost {
		for _, v := range r.Header[headerGRPCTimeout] {
			least = shorter(least, timeoutOfGRPC(v))
		}
	}
	return least
}

// shorter returns the lesser of the two that is above zero.
func shorter(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}

// timeoutOfGRPC reads a number of at most 8 digits and its unit.
func timeoutOfGRPC(text string) (d time.Duration) {
	if last := len(text) - 1; last >= 1 && last <= 8 {
		d, _ = units(text[:last], unitsOfGRPC[text[last]])
	}
	return d
}

var unitsOfGRPC = [256]time.Duration{
	'H': time.Hour, 'M': time.Minute, 'S': time.Second,
	'm': time.Millisecond, 'u': time.Microsecond, 'n': time.Nanosecond,
}
