package routes

import (
	"iter"
	"net/url"
	"strings"
)

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
