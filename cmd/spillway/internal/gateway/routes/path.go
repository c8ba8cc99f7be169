package routes

import (
	"bytes"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// RawPath returns the path of a request as the client has written it, "" if the target is not a path.
func RawPath(r *http.Request) string {
	if r.RequestURI == "" { // it was not read from a connection
		return r.URL.EscapedPath()
	}
	path, _, _ := strings.Cut(r.RequestURI, "?")
	if strings.HasPrefix(path, "/") || path == "*" {
		return path
	}
	_, rest, ok := strings.Cut(path, "://")
	at := strings.IndexByte(rest, '/')
	switch {
	case !ok:
		return ""
	case at < 0:
		return "/"
	default:
		return rest[at:]
	}
}

// Send makes the path of an outgoing request the one that the client has written.
func Send(out *url.URL, came *http.Request) {
	if raw := RawPath(came); raw != out.EscapedPath() {
		out.Opaque = raw
	}
}

// sendable reports whether a request has a target that [Send] can send on: a path, without a
// fragment, which servers cut off, and without a space, which a client of HTTP/2 can send: in a request
// line of HTTP/1.1 the target ends there, and what follows would be read as the version. Package url
// would take the first segment of a path that begins with two slashes for a host, if characters have to
// be escaped in it.
func sendable(r *http.Request) bool {
	raw := RawPath(r)
	return raw != "" && !strings.ContainsAny(r.RequestURI, "# ") && (!strings.HasPrefix(raw, "//") || raw == r.URL.EscapedPath())
}

// Path returns the normalized path of a request: without empty and dot segments.
func Path(r *http.Request) string {
	return decoded(resolve(RawPath(r), isDots, true))
}

// resolve removes dot segments as RFC 3986, section 5.2.4, does, and with merge empty segments,
// too. The function dots returns a segment as it reads if it is one.
func resolve(path string, dots func(segment string) string, merge bool) string {
	if !strings.HasPrefix(path, "/") {
		return path
	}
	kept := make([]byte, 0, len(path))
	for rest, more := path[1:], true; more; {
		var s string
		s, rest, more = strings.Cut(rest, "/")
		switch d := dots(s); {
		case d == ".." && len(kept) > 0:
			kept = kept[:bytes.LastIndexByte(kept, '/')]
		case d == "" && (s != "" || !merge):
			kept = append(append(kept, '/'), s...)
			continue
		}
		if !more { // it ends as a directory
			kept = append(kept, '/')
		}
	}
	return string(kept)
}

// isDots returns a segment as it reads if it is nothing but dots, up to two. They may be escaped.
func isDots(segment string) string {
	if len(segment) > len("%2e%2e") {
		return ""
	}
	return bareDots(strings.ReplaceAll(strings.ReplaceAll(segment, "%2e", "."), "%2E", "."))
}

// noDots keeps all segments.
func noDots(string) string { return "" }

// bareDots returns a segment if it is nothing but dots, up to two.
func bareDots(segment string) string {
	if segment == "." || segment == ".." {
		return segment
	}
	return ""
}

// hasDots is isDots for a server that ignores parameters.
func hasDots(segment string) string {
	segment, _, _ = strings.Cut(segment, ";")
	return isDots(segment)
}

// plain reports whether all servers read a path in the same way: without what some of them
// remove, decode again, take for a separator, or cut off.
func plain(raw string) bool {
	if strings.ContainsAny(raw, `;\`) || strings.Contains(raw, "//") || strings.Contains(raw, "/.") && resolve(raw, isDots, true) != raw {
		return false
	}
	for rest := raw; ; {
		_, after, more := strings.Cut(rest, "%")
		if !more {
			return true
		}
		if len(after) < 2 || slices.Contains(ambiguous, strings.ToLower(after[:2])) || after[0] < '2' || after[0] == '7' && after[1]|0x20 == 'f' {
			return false
		}
		rest = after[2:]
	}
}

// ambiguous are escapes of . / ; \ and %. Escapes of control characters are ambiguous, too.
var ambiguous = []string{"2e", "2f", "3b", "5c", "25"}

// maxOdd is the longest path that is read in more than one way.
const maxOdd = 4 << 10

// readings returns the paths that servers take a path for. They decode it once, twice, or after
// its segments are known. They take a backslash for a slash, and what follows two slashes for a
// host. They remove dot segments, escaped ones and ones with parameters, and empty segments.
func readings(raw string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if !yield(decoded(keptSlashes.Replace(raw))) { // escaped slashes are no separators
			return
		}
		for level, text := range decodings(raw) {
			for _, read := range separations(text) {
				for path := range resolutions(read) {
					if level == 0 {
						path = decoded(path)
					}
					if !yield(path) || level == 0 && !yield(resolve(path, hasDots, true)) { // as a router does once more
						return
					}
				}
			}
		}
	}
}

// decodings returns a path as it is, and if that is different, decoded once and twice.
func decodings(raw string) []string {
	all := []string{raw}
	for range 2 {
		if last := all[len(all)-1]; strings.Contains(last, "%") {
			all = append(all, decoded(last))
		}
	}
	return all
}

// separations returns a path, and if that is different, with slashes for backslashes, and without
// what may be a host.
func separations(text string) []string {
	all := []string{text}
	if strings.Contains(text, `\`) {
		all = append(all, strings.ReplaceAll(text, `\`, "/"))
	}
	for _, text := range all {
		if host, ok := strings.CutPrefix(text, "//"); ok {
			_, path, _ := strings.Cut(host, "/")
			all = append(all, "/"+path)
		}
	}
	return all
}

// resolutions returns a path without the segments that servers remove.
func resolutions(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, dots := range []func(string) string{noDots, bareDots, isDots, hasDots} {
			if !yield(resolve(text, dots, false)) || !yield(resolve(text, dots, true)) {
				return
			}
		}
	}
}

// keptSlashes escapes the escapes of slashes.
var keptSlashes = strings.NewReplacer("%2f", "%252f", "%2F", "%252F", "%5c", "%255c", "%5C", "%255C")

// decoded returns a path without escapes. What is not escaped correctly stays as it is.
func decoded(path string) string {
	if text, err := url.PathUnescape(path); err == nil {
		return text
	}
	return path
}
