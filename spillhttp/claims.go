package spillhttp

import (
	"bytes"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/seed90641741/spillway"
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

// labelOf returns the class that h names, in a header of its own or else as a
// member of the baggage.
func labelOf(h http.Header) (class spillway.Criticality, ok bool) {
	values := h[headerCriticality]
	if len(values) == 0 {
		return baggageOf(h[headerBaggage])
	}
	for _, v := range values {
		class, ok = lower(class, ok, v)
	}
	return class, ok
}

// maxBaggage is how much of a baggage is looked at: as much as W3C Baggage,
// section 3.3.2, has it passed on.
const maxBaggage = 8192

func baggageOf(values []string) (class spillway.Criticality, ok bool) {
	for _, v := range values {
		for rest, more := v[:min(len(v), maxBaggage)], true; more; {
			var member string
			member, rest, more = strings.Cut(rest, ",")
			member, _, _ = strings.Cut(member, ";")
			if key, value, _ := strings.Cut(member, "="); strings.TrimSpace(key) == "criticality" {
				class, ok = lower(class, ok, value)
			}
		}
	}
	return class, ok
}

// lower returns the lower one of class, if that is any, and what text names, if
// it names one.
func lower(class spillway.Criticality, ok bool, text string) (spillway.Criticality, bool) {
	text = strings.TrimSpace(text)
	for c := spillway.Sheddable; c <= spillway.CriticalPlus; c++ {
		if name := c.String(); len(name) == len(text) && (name == text || strings.EqualFold(name, text)) && (!ok || c < class) {
			return c, true
		}
	}
	return class, ok
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
