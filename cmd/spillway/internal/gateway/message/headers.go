package message

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/claims"
)

// Sanitize removes headers that services behind the edge trust, and that a client could only
// forge: of the baggage, the criticality. Those stay that trusted reports, and the attempt of a client of AWS if its
// signature covers it: a service that looks at the signature would reject the request without it.
func Sanitize(h http.Header, trusted func(name string) bool) {
	claims.Put(h, "Baggage", claims.RemoveBaggage(h["Baggage"]))
	for name := range h {
		if internal(name) && !trusted(name) && !(name == sdkRequest && signed(h, name)) {
			delete(h, name)
		}
	}
}

const sdkRequest = "Amz-Sdk-Request"

// signed reports whether a signature of AWS, version 4, covers a header.
func signed(h http.Header, name string) bool {
	algorithm, rest, _ := strings.Cut(h.Get("Authorization"), " ")
	_, list, _ := strings.Cut(rest, "SignedHeaders=")
	list, _, _ = strings.Cut(list, ",")
	if !strings.HasPrefix(algorithm, "AWS4-") {
		return false
	}
	for covered := range strings.SplitSeq(strings.TrimSpace(list), ";") {
		if strings.EqualFold(covered, name) {
			return true
		}
	}
	return false
}

// Inform removes from an answer with a status of 1xx all fields but Link, for which such answers exist (RFC 8297). A server of
// Go sends with it all headers that it has set until then: only the final answer may have them, and by HTTP/2 hop-by-hop fields
// are an error of the protocol.
func Inform(h http.Header) {
	RemoveListed(h, h["Connection"])
	for name := range h {
		if name != "Link" {
			delete(h, name)
		}
	}
}

// RemoveListed removes the fields that the values of Connection list from headers or trailers: they are hop-by-hop, and not for
// the next recipient (RFC 9110, section 7.6.1).
func RemoveListed(h http.Header, connection []string) {
	for _, value := range connection {
		for name := range strings.SplitSeq(value, ",") {
			delete(h, http.CanonicalHeaderKey(textproto.TrimString(name)))
		}
	}
}

// Switch leaves of the hop-by-hop fields of an answer that switches protocols the ones that say so.
func Switch(h http.Header) {
	upgrade := h["Upgrade"]
	RemoveListed(h, h["Connection"])
	delete(h, "Keep-Alive")
	h["Connection"], h["Upgrade"] = []string{"Upgrade"}, upgrade
}

// SanitizeTrailer removes trailers that may not be sent as such (RFC 9110, section 6.5.1): servers of HTTP/2 take them for
// an error of the sender, and others for a header. Names that came by HTTP/1.1 were not checked.
func SanitizeTrailer(h http.Header) {
	for name := range h {
		if name == "Upgrade" || !httpguts.ValidTrailerHeader(name) || !httpguts.ValidHeaderFieldName(name) {
			delete(h, name)
		}
	}
}

// prefixes are names and prefixes of headers that are set inside. Some servers read _ as -.
var prefixes = []string{"X-Envoy-", "X-Request-", "X-Forwarded-", "X-Real-Ip", "Forwarded", "Grpc-Previous-Rpc-Attempts", sdkRequest}

func internal(name string) bool {
	if name == "" || name[0] != 'X' && name[0] != 'F' && name[0] != 'G' && name[0] != 'A' {
		return false
	}
	if strings.Contains(name, "_") {
		name = http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
	}
	return slices.ContainsFunc(prefixes, func(begin string) bool {
		return strings.HasPrefix(name, begin) && (begin[len(begin)-1] == '-' || name == begin)
	})
}

// Degradation is the header with the level of degradation at which a service should answer a request: low, medium or high. Without it
// the service answers in full.
const Degradation = "X-Request-Degradation"

// Degrade gives a request the level of the proxy, or that of the proxy before it if that one is trusted and its level is higher.
func Degrade(h http.Header, own spillway.DegradationLevel, trusted bool) {
	came := h.Get(Degradation)
	delete(h, Degradation)
	for level := range spillway.DegradationLevel(spillway.DegradationLevels) {
		if trusted && level.String() == came {
			own = max(own, level)
		}
	}
	if own > spillway.DegradationNone {
		h[Degradation] = []string{own.String()}
	}
}

// RequestID is the header with the id of a request.
const RequestID = "X-Request-Id"

// maxID is the longest id that is kept, in bytes. An id is in each line about its request.
const maxID = 128

// Identify gives a request an id and returns it, as the values of the header.
func Identify(h http.Header, trusted bool) []string {
	id := IDOf(h, trusted)
	came := h[RequestID]
	if len(came) > 0 && came[0] == id { // others could read another one of several
		came = came[:1:1]
	} else {
		came = []string{id}
	}
	h[RequestID] = came
	return came
}

// IDOf returns the id that Identify gives a request, and leaves its header as it is: the id that came
// with the request if the client is trusted, and it is a word of printable ASCII; else a new UUID.
func IDOf(h http.Header, trusted bool) string {
	if came := h[RequestID]; trusted && len(came) > 0 && word(came[0]) {
		return came[0]
	}
	return newID()
}

func word(id string) bool {
	return id != "" && len(id) <= maxID && !strings.ContainsFunc(id, func(c rune) bool { return c <= ' ' || c > '~' })
}

// newID returns a UUID of version 4: RFC 9562, section 5.4.
func newID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // it never fails
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	text := hex.AppendEncode(make([]byte, 0, 36), id[:4])
	for _, group := range [...][]byte{id[4:6], id[6:8], id[8:10], id[10:]} {
		text = hex.AppendEncode(append(text, '-'), group)
	}
	return string(text)
}
