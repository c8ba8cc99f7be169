package importer

import (
	"cmp"
	"maps"
	"math"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/importer/document"
)

// defaultTimeout is that of routes of Envoy that name none.
const defaultTimeout = 15 * time.Second

// routes imports a route configuration, of some listeners or, without names, of all.
// Envoy takes the virtual host whose domain is the narrowest, wherever it stands; here
// the first route that matches counts.
func (e *envoyImport) routes(c document.Part, listeners []string) {
	first := len(e.config.Routes)
	hosts := c.Get("virtual_hosts").List()
	alone := len(hosts) == 1 && (len(e.found.routes) == 1 || len(listeners) > 0 && len(e.config.Listeners) > 1)
	for _, host := range hosts {
		if e.overTLS(host, listeners) {
			e.virtualHost(host, alone)
		}
	}
	imported := e.config.Routes[first:]
	slices.SortStableFunc(imported, func(x, y config.Route) int { return cmp.Compare(narrowness(y.Host), narrowness(x.Host)) })
	if n := len(imported); n > 0 && imported[0].Host != imported[n-1].Host && narrowness(imported[n-1].Host) < math.MaxInt {
		e.Notef("a request that no route of its virtual host matches is matched with the routes of wider domains, where Envoy answers 404")
	}
	if len(imported) == 0 && len(listeners) > 0 && len(e.config.Listeners) > 1 {
		e.Notef("no route of listener %.64q could be imported: it answers 404", listeners[0])
	}
	if len(listeners) > 0 && len(e.config.Listeners) > 1 {
		for i := range imported {
			imported[i].Listeners = listeners
		}
	}
}

// overTLS reports whether a virtual host may be served. One that is for TLS only is not for
// listeners without it: Envoy would redirect its requests.
func (e *envoyImport) overTLS(host document.Part, listeners []string) bool {
	required := host.Get("require_tls")
	if required.Text() == "" || required.Text() == "NONE" {
		required.Carry("routes[].listeners")
		return true
	}
	for i := range e.config.Listeners {
		l := &e.config.Listeners[i]
		if l.TLS == nil && (len(listeners) == 0 || slices.Contains(listeners, cmp.Or(l.Name, l.Address))) || len(e.found.listeners) == 0 {
			required.LeaveAs(Security, "a listener without TLS would serve what is for TLS only", "a listener with tls")
			host.LeaveAs(Traffic, "it is for TLS only", "")
			return false
		}
	}
	required.Carry("listeners[].tls")
	return true
}

// virtualHost imports the routes of one. Alone means that no others are for the same listener.
func (e *envoyImport) virtualHost(host document.Part, alone bool) {
	var names []string
	for _, domain := range host.Get("domains").List() {
		if name, ok := e.domain(domain); ok {
			names = append(names, name)
		}
	}
	type denial struct {
		document.Part

		before int // how many routes there were
	}
	var denied []denial
	for _, route := range host.Get("routes").List() {
		if denies(route) {
			denied = append(denied, denial{route, len(e.config.Routes)})
			continue
		}
		e.route(names, route, host.Get("retry_policy"))
	}
	for _, route := range denied {
		if alone && route.before == len(e.config.Routes) {
			route.LeaveAs(Traffic, "requests that it matches are answered 404", "")
		} else {
			route.LeaveAs(Security, "Envoy does not pass these requests on; here the routes after it would", "the same rule in the service, or in front of the proxy")
		}
	}
}

// denies reports whether Envoy answers requests of a route itself, by an error or by asking
// for TLS.
func denies(route document.Part) bool {
	status, _ := route.At("direct_response", "status").Count()
	to := route.Get("redirect")
	return status >= 400 || isTrue(to.Get("https_redirect")) || to.Get("scheme_redirect").Text() == "https" ||
		route.Get("non_forwarding_action").Given()
}

// narrowness is greater where a host is less than another: a name before those below
// one, longer ones first, and these before all.
func narrowness(host string) int {
	if host != "" && !strings.HasPrefix(host, "*") {
		return math.MaxInt
	}
	return len(host)
}

// domain returns the host that a domain represents; all hosts are the empty one.
func (e *envoyImport) domain(c document.Part) (string, bool) {
	name := c.Text()
	if name == "*" {
		c.Carry("routes[]")
		return "", true
	}
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	reason := ""
	if name != c.Text() {
		reason = "routes do not match ports"
	}
	return name, assign(e.builder, new(config.Route), c, "host", reason, name)
}

// route imports a route for each host of its virtual host.
func (e *envoyImport) route(hosts []string, c, inherited document.Part) {
	var r config.Route
	action := c.Get("route")
	name := action.Get("cluster")
	switch {
	case name.Text() == "":
		c.LeaveAs(Traffic, "a route goes to one cluster that it names; what this one matches goes on to those after it", "")
		return
	case len(hosts) == 0:
		c.Leave("no host of the virtual host could be imported", "")
		return
	case strings.Contains(name.Text(), "~"):
		c.Leave("the name of a cluster must be without ~", "")
		return
	}
	before := e.Mark()
	if !e.match(&r, c.Get("match")) {
		e.Back(before)
		c.LeaveAs(Traffic, "what it matches cannot be said of a route here, and goes on to those after it", "path, exact, methods and headers, in routes of your own")
		return
	}
	e.timeout(&r, action.Get("timeout"))
	if d, ok := action.Get("idle_timeout").Duration(); ok {
		assign(e.builder, &r, action.Get("idle_timeout"), "stream_idle_timeout",
			"it is for gRPC calls and upgraded connections; others have body_timeout and write_timeout of the listener", cmp.Or(d, -1))
	}
	x := config.Clone(e.known(name.Text()))
	e.retries(x, action.Get("retry_policy").Or(inherited))
	name.Carry("routes[].cluster")
	e.used[name.Text()] = true
	r.Cluster = e.place(x)
	for _, host := range hosts {
		each := r
		each.Host = host
		e.config.Routes = append(e.config.Routes, each)
	}
}

// match imports what a route matches, and reports whether all of it could be.
func (e *envoyImport) match(r *config.Route, c document.Part) bool {
	ok := true
	for _, part := range c.Fields() {
		switch document.LastField(part.Path) {
		case "prefix":
			if part.Text() == "/" {
				part.Carry("routes[]")
				continue
			}
			ok = put(e.builder, r, part, "path", "") && r.Path != "" && ok
		case "path":
			ok = put(e.builder, r, part, "path", "") && r.Path != "" && ok
			r.Exact = ok
		case "case_sensitive":
			if part.Text() != "true" {
				return false
			}
			part.Carry("routes[].path")
		case "headers":
			for _, h := range part.List() {
				ok = e.header(r, h) && ok
			}
		case "grpc":
			ok = e.condition(r, part, "Content-Type", "application/grpc",
				"requests with another content type of gRPC, such as application/grpc+proto, go on to the routes after it") && ok
		default:
			return false
		}
	}
	return ok
}

// header imports what a header must be: its name, and one condition that is understood.
func (e *envoyImport) header(r *config.Route, c document.Part) bool {
	name, exact := c.Get("name").Text(), c.Get("exact_match")
	if text := c.Get("string_match"); len(text.Fields()) == 1 {
		exact = text.Get("exact")
	}
	switch {
	case name == "", strings.HasPrefix(name, ":") && name != ":method", len(c.Fields()) != 2:
		return false
	case exact.Text() == "*": // which is any value here
		return false
	case exact.There():
		return e.condition(r, c, name, exact.Text(), "")
	case c.Get("present_match").Text() == "true":
		return e.condition(r, c, name, "*", "")
	default:
		return false
	}
}

// condition adds what a header, or the method, must be, unless there is such a condition. A reason says how
// it means something else.
func (e *envoyImport) condition(r *config.Route, c document.Part, name, value, reason string) bool {
	next := config.Clone(r)
	if name == ":method" {
		next.Methods = append(next.Methods, value)
	} else {
		next.Headers = maps.Collect(maps.All(r.Headers))
		next.Headers[name] = value
	}
	before := len(r.Methods) + len(r.Headers)
	return try(e.builder, r, next, c, "headers", reason) && len(r.Methods)+len(r.Headers) == before+1 && len(r.Methods) < 2
}

func (e *envoyImport) timeout(r *config.Route, c document.Part) {
	switch d, ok := c.Duration(); {
	case !c.There():
		r.Timeout = defaultTimeout
		e.note15 = true
	case ok && d == 0:
		c.Carry("routes[].timeout") // none
	default:
		put(e.builder, r, c, "timeout", "")
	}
}

// retryWords have the treatment of each word of retry_on: the reason why it was left
// out, or how its meaning is another one.
var retryWords = map[string]struct {
	left bool
	why  string
}{
	"5xx":               {false, "a request that may have done its work is not sent again unless it is idempotent"},
	"gateway-error":     {false, "a request that may have done its work is not sent again unless it is idempotent"},
	"reset":             {false, "a request that may have done its work is not sent again unless it is idempotent"},
	"connect-failure":   {false, ""},
	"refused-stream":    {false, ""},
	"unavailable":       {false, "a call that reached the server is sent again only if the answer invites to, by grpc-retry-pushback-ms"},
	"retriable-4xx":     {true, "a conflict (409) is the client's to solve"},
	"cancelled":         {true, "a call that may have done its work is not sent again"},
	"deadline-exceeded": {true, "there is no time left"},
	"internal":          {true, "a call that may have done its work is not sent again"},
	"resource-exhausted": {false,
		"a call is sent again only if the answer invites to, by grpc-retry-pushback-ms"},
	"envoy-ratelimited": {true, "who is over a limit is not helped by more requests"},
}

func (e *envoyImport) retries(x *config.Cluster, c document.Part) {
	if !c.There() {
		return
	}
	on := c.Get("retry_on")
	if !on.There() {
		c.Leave("it says not what to retry on, and so Envoy does not", "")
		return
	}
	if !retryOn(on) {
		c.Leave("nothing is left to retry on", "")
		return
	}
	x.Retry.Mode = "enforce"
	x.Retry.MaxAttempts = 2 // one retry, where none is said
	retries := c.Get("num_retries")
	switch n, ok := retries.Count(); {
	case ok:
		assign(e.builder, x, retries, "retry.max_attempts", "with the first attempt", n+1)
	case retries.There():
		retries.Leave("it is no number from 0 to 2147483647", "")
	}
	longest := c.At("retry_back_off", "max_interval")
	if put(e.builder, x, c.At("retry_back_off", "base_interval"), "retry.base", "") && !longest.There() {
		x.Retry.Max = 10 * x.Retry.Base // the default of Envoy
	}
	put(e.builder, x, longest, "retry.max", "")
	c.Get("per_try_timeout").Leave("an attempt has all the time that the request has left", "response_timeout of the cluster")
	c.Get("retriable_status_codes").Leave("the meaning of an answer decides on a retry, not its status code", "x-should-retry in its answer")
	for _, field := range []string{"retry_host_predicate", "host_selection_retry_max_attempts", "retry_priority"} {
		c.Get(field).Leave("an endpoint that rejected gets no other attempt of the same request while other endpoints are available, in any case", "")
	}
}

// retryOn imports the words of one text, each by itself, and reports whether the proxy
// knows any.
func retryOn(c document.Part) bool {
	var left, changed []string
	for word := range strings.SplitSeq(c.Text(), ",") {
		word = strings.TrimSpace(word)
		known, ok := retryWords[word]
		switch {
		case !ok:
			left = append(left, word+": the proxy has nothing like it")
		case known.left:
			left = append(left, word+": "+known.why)
		case known.why != "":
			changed = append(changed, word+": "+known.why)
		}
	}
	why := strings.Join(slices.Concat(changed, left), "; ")
	if len(left) == strings.Count(c.Text(), ",")+1 {
		c.Leave(why, "")
		return false
	}
	c.Change("retry.mode", why)
	return true
}
