package document

import (
	"regexp"
	"slices"
	"strings"
)

// A Rank says what a note can cost. Notes are in the order of their ranks.
type Rank int

// The ranks, the worst first.
const (
	Security Rank = iota // who may connect, what is encrypted, verified or denied
	Traffic              // which requests are served, and where they go
	Limit                // bounds, timeouts and retries
	Detail               // names, statistics, and what has no effect here
)

var rankNames = [...]string{"security", "traffic", "limit", "detail"}

// String returns the name of the rank.
func (r Rank) String() string { return rankNames[r] }

// MarshalText implements [encoding.TextMarshaler].
func (r Rank) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Rules by which the rank of a leaf follows from its path, in snake case. The first one
// looks at the whole path, so everything within a TLS context is of security. An import
// knows more of some fields, and sets their rank itself.
var (
	securityPath = regexp.MustCompile(`(?i)(transport_socket|tls|ssl|rbac|auth|jwt|hmac|secret|certificate|validation_context|credential|` +
		`passw|api_?key|client_cert|xff|trust|internal_|normalize|escaped_slashes|csrf|principal|permission|source_prefix|` +
		`require_|deny|headers_to_(add|remove)|per_filter_config|sasl|fips|encrypt|key_?file|bypass)`)
	limitField = regexp.MustCompile(`(?i)(timeout|duration|max|min|limit|threshold|interval|retr|budget|buffer|rate|window|percent|ejection|` +
		`pending|requests|connections|streams|backoff|pool|depth|burst|priority)`)
	trafficField = regexp.MustCompile(`(?i)(cluster|route|match|redirect|rewrite|address|endpoint|host|domain|prefix|path|regex|port|weight|` +
		`method|service|protocol|direct_response|status|lb_|^type$|upgrade|set)`)
)

func rankOf(path string) Rank {
	path = upper.ReplaceAllString(path, "${1}_${2}")
	field := path[strings.LastIndexByte(path, '.')+1:]
	switch {
	case securityPath.MatchString(path) && !tokens.MatchString(path):
		return Security
	case strings.HasPrefix(field, "stat_"), field == "lb_policy", strings.HasPrefix(path, "admin."), field == "@type":
		return Detail
	case limitField.MatchString(field):
		return Limit
	case trafficField.MatchString(field):
		return Traffic
	default:
		return Detail
	}
}

// Counts returns how many values were left out, by rank.
func (r *Report) Counts() (left [len(rankNames)]int) {
	for _, n := range r.Notes {
		if n.Left {
			left[n.Rank]++
		}
	}
	return left
}

// Sort orders the notes, the worst first, and within a rank what was left out before
// what was changed.
func (r *Report) Sort() {
	order := func(n Note) int {
		switch {
		case n.Left:
			return int(n.Rank) * 2
		case n.Path != "":
			return int(n.Rank)*2 + 1
		default: // of no leaf
			return int(Detail)*2 + 2
		}
	}
	slices.SortStableFunc(r.Notes, func(x, y Note) int { return order(x) - order(y) })
}
