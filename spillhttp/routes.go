package spillhttp

import (
	"net/http"
	"strings"
)

// Routes returns a Route of [HandlerConfig] for frameworks that list their routes, such as Gin,
// Echo and Fiber. It names the route of a request before the framework serves it. Routes calls list
// once, and list calls add for each route, with its method and its path:
//
//	Route: spillhttp.Routes(func(add func(method, path string)) {
//		for _, r := range engine.Routes() {
//			add(r.Method, r.Path)
//		}
//	})
//
// The name of a route is its method and its path, such as "GET /users/:id". A segment with ":" or
// "{" is a parameter. A segment with "*", "+" or "..." matches the rest of the path. A last segment
// that ends with "?" is optional. If several routes match, the first segment in which they differ
// decides: a plain segment wins over a parameter. A request without a route has the name "". The
// returned func allocates nothing and is safe for concurrent use.
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

// A route is a node in the tree of all routes: the routes whose paths begin with the same segments.
type route struct {
	static map[string]*route // by the next segment, if that is a name
	// parameter has the routes whose next segment is a parameter.
	parameter *route
	key       string // key of the route that ends here; empty if none does
	rest      string // key of the route that matches all longer paths; empty if none does
}

// add adds a route to the tree, by the rest of its path from n on.
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

// record sets a key, unless an earlier route has the same segments.
func record(at *string, key string) {
	if *at == "" {
		*at = key
	}
}

// next returns the node for a segment below n, and makes it if it does not exist.
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

// find returns the key for the rest of a path from n on, or "" if no route matches.
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

// behind returns the key if n was reached: for the path that ends there, or goes on with more.
func (n *route) behind(more string, goesOn bool) string {
	if n == nil || goesOn {
		return n.find(more)
	}
	if n.key == "" {
		return n.rest
	}
	return n.key
}
