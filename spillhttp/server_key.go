package spillhttp

import "net/http"

// keyOf names the route of r.
func (h *Handler) keyOf(r *http.Request) string {
	if h.key == nil {
		return r.Pattern
	}
	return h.key(r)
}

// route finds out what names the routes of requests, where the configuration does not say.
func (h *Handler) route() {
	if mux, ok := h.next.(*http.ServeMux); ok && h.key == nil {
		h.key, h.plain = patternIn(mux), false
	}
}

// patternIn returns what names the route of a request that mux is about to serve. All names
// are patterns that are registered there, so clients cannot make more of them.
func patternIn(mux *http.ServeMux) func(*http.Request) string {
	return func(r *http.Request) string {
		if r.Pattern != "" { // of an outer mux
			return r.Pattern
		}
		if r.Method == http.MethodConnect || r.URL == nil {
			return "" // of a redirect of CONNECT, Handler returns the path
		}
		_, pattern := mux.Handler(r)
		return pattern
	}
}
