package spillhttp

import (
	"net/http"
	"strings"
)

// Routes returns a Key of [HandlerConfig] for frameworks that list their routes, such as Gin, Echo and Fiber: it names the route of a
// request before the framework serves it. list is called once, and calls add for each route, with its method and its path:
//
//	Key: spillhttp.Routes(func(add func(method, path string)) {
//		for _, r := range engine.Routes() {
//			add(r.Method, r.Path)
//		}
//	})
//
// The key of a route is its method and its path, such as "GET /users/:id". A segment with ":" or "{" is a parameter, one with "*", "+"
// or "..." matches the rest of the path, and a last one that ends with "?" may be missing. Where several routes fit, the first segment
// that is no parameter decides. A request without a route has no key. The func allocates nothing and is safe for concurrent use.
func Routes(list func(add func(method, path string))) func(*http.Request) string {
	methods := map[string]*route{}
	list(func(method, path string) {
		if methods[method] == nil {
			methods[method] = new(route)
		}
		methods[method].add(strings.TrimPrefix(path, "/"), method+" "+path)
	})
	return func(r *http.Request) string { return methods[r.Method].find(strings.TrimPrefix(r.URL.Path, "/")) }
}

// A route is what the paths of some routes have in common: the segments so far.
type route struct {
	static    map[string]*route // by the next segment
	parameter *route
	key       string // of the path that ends here
	rest      string // the key of a path that matches whatever follows
}

// add adds the rest of a path.
func (n *route) add(path, key string) {
	for {
		segment, more, goesOn := strings.Cut(path, "/")
		switch {
		case strings.ContainsAny(segment, "*+"), strings.Contains(segment, "..."):
			record(&n.rest, key)
			return
		case strings.HasSuffix(segment, "?"):
			record(&n.key, key)
		}
		if n, path = n.next(segment), more; !goesOn {
			record(&n.key, key)
			return
		}
	}
}

// record sets the key of a route, unless an earlier one has the same segments.
func record(at *string, key string) {
	if *at == "" {
		*at = key
	}
}

// next returns the routes behind a segment.
func (n *route) next(segment string) *route {
	if strings.ContainsAny(segment, ":{") {
		if n.parameter == nil {
			n.parameter = new(route)
		}
		return n.parameter
	}
	if n.static[segment] == nil {
		if n.static == nil {
			n.static = map[string]*route{}
		}
		n.static[segment] = new(route)
	}
	return n.static[segment]
}

// find returns the key of the rest of a path, or nothing.
func (n *route) find(path string) string {
	if n == nil {
		return ""
	}
	segment, more, goesOn := strings.Cut(path, "/")
	if key := n.static[segment].behind(more, goesOn); key != "" {
		return key
	}
	if segment != "" {
		if key := n.parameter.behind(more, goesOn); key != "" {
			return key
		}
	}
	return n.rest
}

// behind returns the key of what follows a segment.
func (n *route) behind(more string, goesOn bool) string {
	if n == nil || goesOn {
		return n.find(more)
	}
	if n.key == "" {
		return n.rest
	}
	return n.key
}
