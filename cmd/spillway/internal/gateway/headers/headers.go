// Package headers says which headers of a client's request reach the upstream, and gives each
// request an id.
package headers

import (
	"net/http"
	"strings"
)

// Sanitize removes headers that services behind the edge trust, and that a client could only
// forge. Those stay that trusted reports.
func Sanitize(h http.Header, trusted func(name string) bool) {
	for name := range h {
		if internal(name) && !trusted(name) {
			delete(h, name)
		}
	}
}

// prefixes are names and prefixes of headers that are set inside. Some servers read _ as -.
var prefixes = []string{"X-Envoy-", "X-Request-", "X-Forwarded-", "X-Real-Ip", "Forwarded", "Grpc-Previous-Rpc-Attempts", "Amz-Sdk-Request"}

func internal(name string) bool {
	if name == "" || name[0] != 'X' && name[0] != 'F' && name[0] != 'G' && name[0] != 'A' {
		return false
	}
	if strings.Contains(name, "_") {
		name = http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
	}
	for _, begin := range prefixes {
		if strings.HasPrefix(name, begin) && (begin[len(begin)-1] == '-' || name == begin) {
			return true
		}
	}
	return false
}

// Keep copies a header to h unchanged, if the request has it.
func Keep(h, came http.Header, name string) {
	if values := came[name]; len(values) > 0 {
		h[name] = values
	}
}

// DropMember removes a member from the baggage: W3C Baggage, section 3.3.
func DropMember(h http.Header, name string) {
	values := h["Baggage"]
	if len(values) == 0 {
		return
	}
	var kept []string
	for _, v := range values {
		for member := range strings.SplitSeq(v, ",") {
			pair, _, _ := strings.Cut(member, ";")
			if key, _, _ := strings.Cut(pair, "="); strings.TrimSpace(key) != name {
				kept = append(kept, member)
			}
		}
	}
	if h.Del("Baggage"); len(kept) > 0 {
		h.Set("Baggage", strings.TrimSpace(strings.Join(kept, ",")))
	}
}
