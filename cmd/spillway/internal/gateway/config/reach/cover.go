// Package reach says which requests reach which part of a configuration: routes that others leave nothing to, and
// endpoints that are an address of the proxy itself.
package reach

import (
	"net/http"
	"slices"
	"strings"
)

// A Route has the conditions of a route, all of which a request must match. Empty ones match all.
type Route struct {
	Listeners, Methods    []string
	Host, Path            string            // *.example.com is all below example.com, and a path is the start of one
	Exact, Exempt, Prefix bool              // of the path
	Headers               map[string]string // * is any
}

// Covered returns for each route the first one before it that matches all of its requests, -1 if none does.
func Covered(routes []Route) []int {
	all, _ := search(routes)
	return all
}

// search also returns how many pairs of routes it has compared.
func search(routes []Route) (first []int, compared int) {
	c := covered{routes: routes, byPath: make(map[string]map[selector][]int)}
	for i := range routes {
		first = append(first, c.cover(i))
	}
	return first, c.compared
}

// covered are the routes that some other route may follow without ever being used. A route is found by the start of
// its path, its host and one of its headers, so that many routes take little longer than a few.
type covered struct {
	routes  []Route
	byPath  map[string]map[selector][]int
	lengths []int // of the paths, sorted

	compared int
}

// A selector is what all requests of a route have in common, beside the path.
type selector struct{ host, header, value string }

// cover returns the first route that matches all requests of the i-th one, -1 if none does. It must be called
// for each route in turn. One that is covered covers nothing that the first does not.
func (c *covered) cover(i int) (first int) {
	r := &c.routes[i]
	if first = c.find(r); first < 0 && !r.Exempt {
		c.add(i, r)
	}
	return first
}

func (c *covered) add(i int, r *Route) {
	some := selector{host: strings.ToLower(r.Host)}
	for name, value := range r.Headers {
		if name = http.CanonicalHeaderKey(name); name > some.header {
			some.header, some.value = name, value
		}
	}
	of := c.byPath[r.Path]
	if of == nil {
		of = make(map[selector][]int)
		c.byPath[r.Path] = of
		if at, known := slices.BinarySearch(c.lengths, len(r.Path)); !known {
			c.lengths = slices.Insert(c.lengths, at, len(r.Path))
		}
	}
	of[some] = append(of[some], i)
}

func (c *covered) find(r *Route) int {
	first, wider := -1, r.selectors()
	for _, n := range c.lengths {
		if n > len(r.Path) {
			break
		}
		of := c.byPath[r.Path[:n]]
		for i := 0; i < len(wider) && len(of) > 0; i++ {
			if at := c.firstOf(of[wider[i]], r); at >= 0 && (first < 0 || at < first) {
				first = at
			}
		}
	}
	return first
}

// firstOf returns the first of some routes that covers r, -1 if none does.
func (c *covered) firstOf(some []int, r *Route) int {
	if at := slices.IndexFunc(some, func(i int) bool {
		c.compared++
		return c.routes[i].covers(r)
	}); at >= 0 {
		return some[at]
	}
	return -1
}

// selectors returns the selectors that a route may have that covers r.
func (r *Route) selectors() (all []selector) {
	for _, host := range widerHosts(strings.ToLower(r.Host)) {
		all = append(all, selector{host: host})
		for name, value := range r.Headers {
			name = http.CanonicalHeaderKey(name)
			all = append(all, selector{host, name, value}, selector{host, name, "*"})
		}
	}
	return all
}

// widerHosts returns the hosts of routes that match all of a host: any, the same, and patterns that it ends in.
func widerHosts(host string) []string {
	all := []string{""}
	if host != "" {
		all = append(all, host)
	}
	for i := range host {
		if host[i] == '.' && host != "*"+host[i:] {
			all = append(all, "*"+host[i:])
		}
	}
	return all
}

// covers reports whether all requests that other matches match r. Exempt routes match plain
// paths only, so they cover nothing.
func (r *Route) covers(other *Route) bool {
	return !r.Exempt && r.coversPath(other) && r.coversHost(other.Host) &&
		within(other.Listeners, r.Listeners) && within(other.Methods, r.Methods) && r.coversHeaders(other.Headers)
}

func (r *Route) coversPath(other *Route) bool {
	if r.Exact {
		return other.Path == r.Path && (other.Exact || other.Exempt && !other.Prefix)
	}
	return strings.HasPrefix(other.Path, r.Path)
}

func (r *Route) coversHost(other string) bool {
	below, wild := strings.CutPrefix(strings.ToLower(r.Host), "*")
	other = strings.ToLower(other)
	return r.Host == "" || other == strings.ToLower(r.Host) || wild && strings.HasSuffix(strings.TrimPrefix(other, "*"), below)
}

func (r *Route) coversHeaders(other map[string]string) bool {
	has := make(map[string]string, len(other))
	for name, value := range other {
		has[http.CanonicalHeaderKey(name)] = value
	}
	for name := range r.Headers {
		value, ok := has[http.CanonicalHeaderKey(name)]
		if !ok || r.Headers[name] != "*" && r.Headers[name] != value {
			return false
		}
	}
	return true
}

// within reports whether some is a part of all; no names mean all names.
func within(some, all []string) bool {
	return len(all) == 0 || len(some) > 0 && !slices.ContainsFunc(some, func(name string) bool { return !slices.Contains(all, name) })
}
