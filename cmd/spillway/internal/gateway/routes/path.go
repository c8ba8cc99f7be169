package routes

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// straight returns an escaped path without empty and dot segments, as RFC 3986, section
// 5.2.4, removes them. Dots may be escaped.
func straight(escaped string) string {
	if !detours(escaped) {
		return escaped
	}
	var kept []string
	segments := strings.Split(escaped[1:], "/")
	for i, s := range segments {
		last := i == len(segments)-1
		switch dots(s) {
		case ".":
		case "..":
			kept = kept[:max(0, len(kept)-1)]
		default:
			if s != "" {
				kept = append(kept, s)
				continue
			}
		}
		if last && len(kept) > 0 {
			kept = append(kept, "") // it ends as a directory
		}
	}
	return "/" + strings.Join(kept, "/")
}

// detours reports whether a path may have segments that are removed.
func detours(escaped string) bool {
	return strings.HasPrefix(escaped, "/") &&
		(strings.Contains(escaped, "//") || strings.Contains(escaped, "/.") || strings.Contains(escaped, "/%2"))
}

// dots returns a segment as it reads if it is nothing but dots, up to two.
func dots(segment string) string {
	if len(segment) > len("%2e%2e") {
		return ""
	}
	text := strings.ReplaceAll(strings.ReplaceAll(segment, "%2e", "."), "%2E", ".")
	if text == "." || text == ".." {
		return text
	}
	return ""
}

// Path returns the normalized path of a request, which routes match.
func Path(r *http.Request) string {
	if !detours(r.URL.Path) && r.URL.RawPath == "" {
		return r.URL.Path
	}
	escaped := r.URL.EscapedPath()
	if clean := straight(escaped); clean != escaped {
		if path, err := url.PathUnescape(clean); err == nil {
			return path
		}
	}
	return r.URL.Path
}

// straighten returns a request with a normalized path: without empty and dot segments.
func straighten(r *http.Request) *http.Request {
	if !detours(r.URL.Path) && r.URL.RawPath == "" {
		return r
	}
	escaped := r.URL.EscapedPath()
	clean := straight(escaped)
	path, err := url.PathUnescape(clean)
	if clean == escaped || err != nil {
		return r
	}
	u, changed := *r.URL, *r
	u.Path, u.RawPath = path, clean
	changed.URL = &u
	return &changed
}

// plain reports whether all servers read a path in the same way: without what some of them
// decode again, take for a separator, or cut off. What is exempt must be plain.
func plain(u *url.URL) bool {
	escaped := u.EscapedPath()
	if straight(escaped) != escaped || strings.ContainsAny(escaped, `;\`) {
		return false
	}
	for rest := escaped; ; {
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
