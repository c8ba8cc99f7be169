package spillhttp

import (
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

// The fields that are read, by their place in claimFields.
const (
	claimCriticality = iota
	claimBaggage
	claimDeadline
	claimAttempt
	claimSDKRequest
	claimGRPCTimeout
	claimGRPCAttempts
	claimKinds
)

// claimHeaders are their names.
var claimHeaders = [claimKinds]string{
	headerCriticality, headerBaggage, headerDeadline, headerAttempt, headerSDKRequest, headerGRPCTimeout, headerGRPCAttempts,
}

// claimFields are the values of these fields in one request.
type claimFields [claimKinds][]string

// read takes the fields from r. Attempts are read only if asked for: a lookup costs more
// than what the Handler decides.
func (f *claimFields) read(r *http.Request, attempts bool) {
	h := r.Header
	f[claimCriticality], f[claimBaggage], f[claimDeadline] = h[headerCriticality], h[headerBaggage], h[headerDeadline]
	if r.Method == http.MethodPost {
		f[claimGRPCTimeout] = h[headerGRPCTimeout]
	}
	if attempts {
		f.readAttempts(r)
	}
}

func (f *claimFields) readAttempts(r *http.Request) {
	h := r.Header
	f[claimAttempt], f[claimSDKRequest] = h[headerAttempt], h[headerSDKRequest]
	if r.Method == http.MethodPost {
		f[claimGRPCAttempts] = h[headerGRPCAttempts]
	}
}

// attempt returns which attempt the request says that it is, from 0.
func (f *claimFields) attempt() (n int) {
	for _, v := range f[claimAttempt] {
		n = max(n, count(v)-1)
	}
	for _, v := range f[claimGRPCAttempts] {
		n = max(n, count(v))
	}
	for _, v := range f[claimSDKRequest] {
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

// attemptOf returns which attempt r says that it is, from 0.
func attemptOf(r *http.Request) int {
	var f claimFields
	f.readAttempts(r)
	return f.attempt()
}

// count returns the whole number in text, however long, or 0.
func count(text string) int {
	n, _ := units(text, 1)
	return int(min(n, math.MaxInt32))
}

// timeout returns how long the request says that the caller will wait, or 0.
func (f *claimFields) timeout() (least time.Duration) {
	for _, v := range f[claimDeadline] {
		d, _ := units(v, time.Millisecond)
		least = shorter(least, d)
	}
	for _, v := range f[claimGRPCTimeout] {
		least = shorter(least, timeoutOfGRPC(v))
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
