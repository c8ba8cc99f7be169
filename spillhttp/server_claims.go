package spillhttp

import (
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/internal/claims"
	"github.com/seed90641741/spillway/internal/hints"
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

// claimFields are the values of these fields in one request. The fields of gRPC are only set for
// POST requests.
type claimFields [claimKinds][]string

// read takes into c what the request says of itself. The attempt is only looked for if it
// counts.
func (f *claimFields) read(c *ingress.Claims, attempts bool) {
	c.Criticality, c.Labelled = claims.Criticality(f[claimCriticality], f[claimBaggage])
	c.Timeout = shorter(timeout(f[claimDeadline]), timeoutOfGRPC(f[claimGRPCTimeout]))
	if attempts {
		c.Attempt = max(attemptIn(f[claimAttempt], f[claimSDKRequest]), attemptOfGRPC(f[claimGRPCAttempts]))
	}
}

// claimsOf does for r what [claimFields.read] does, and returns the baggage of r. It looks up
// each field by its name: a table of them costs more than the lookups.
func claimsOf(r *http.Request, c *ingress.Claims, attempts bool) (baggage []string) {
	baggage = r.Header[headerBaggage]
	c.Criticality, c.Labelled = claims.Criticality(r.Header[headerCriticality], baggage)
	c.Timeout = timeoutOf(r)
	if attempts {
		c.Attempt = attemptOf(r)
	}
	return baggage
}

// attemptOf returns which attempt r says that it is, from 0.
func attemptOf(r *http.Request) int {
	n := attemptIn(r.Header[headerAttempt], r.Header[headerSDKRequest])
	if r.Method == http.MethodPost {
		n = max(n, attemptOfGRPC(r.Header[headerGRPCAttempts]))
	}
	return n
}

func attemptIn(own, sdk []string) (n int) {
	for _, v := range own {
		n = max(n, count(v)-1)
	}
	for _, v := range sdk {
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

func attemptOfGRPC(values []string) (n int) {
	for _, v := range values {
		n = max(n, count(v))
	}
	return n
}

// count returns the whole number in text, however long, or 0.
func count(text string) int {
	n, _ := hints.Units(text, 1)
	return int(min(n, math.MaxInt32))
}

// timeoutOf returns how long r says that the caller will wait, or 0.
func timeoutOf(r *http.Request) time.Duration {
	least := timeout(r.Header[headerDeadline])
	if r.Method == http.MethodPost {
		least = shorter(least, timeoutOfGRPC(r.Header[headerGRPCTimeout]))
	}
	return least
}

func timeout(values []string) (least time.Duration) {
	for _, v := range values {
		d, _ := hints.Units(v, time.Millisecond)
		least = shorter(least, d)
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

// timeoutOfGRPC reads numbers of at most 8 digits, each with its unit.
func timeoutOfGRPC(values []string) (least time.Duration) {
	for _, text := range values {
		if last := len(text) - 1; last >= 1 && last <= 8 {
			d, _ := hints.Units(text[:last], unitsOfGRPC[text[last]])
			least = shorter(least, d)
		}
	}
	return least
}

var unitsOfGRPC = [256]time.Duration{
	'H': time.Hour, 'M': time.Minute, 'S': time.Second,
	'm': time.Millisecond, 'u': time.Microsecond, 'n': time.Nanosecond,
}
