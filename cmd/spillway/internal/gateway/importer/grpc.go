package importer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/importer/document"
)

// maxAttemptsOfGRPC is how many attempts grpc makes at most, whatever its service
// config says (gRFC A6).
const maxAttemptsOfGRPC = 5

// GRPC imports a service config in JSON: retries, throttling, timeouts and health
// checks of methods, as gRFC A6 and the documents of grpc have them.
//
// Retries belong to clusters here, so methods with different retries get clusters of
// their own with the same endpoint. Routes are in the order in which grpc looks for
// names: methods, services, all.
func GRPC(d Document, o Options) (*Result, error) {
	g := grpcImport{builder: newBuilder(o)}
	roots, err := g.documents([]Document{d}, tree)
	if err != nil {
		return nil, err
	}
	root := &roots[0]
	if _, ok := root.Value.(map[string]any); !ok {
		return nil, fmt.Errorf("%s: is no service config: it must be an object", d.Name)
	}
	if err := document.Ambiguous("", root.Value); err != nil {
		return nil, fmt.Errorf("%s: %w", d.Name, err)
	}
	root.Fold = true // as encoding/json does for grpc-go, whose example says MaxAttempts
	g.base = g.cluster("upstream")
	g.base.Protocol, g.base.Retry.Mode = "http2", "off"
	g.throttling(root.Get("retry_throttling"))
	g.health(root.At("health_check_config", "service_name"))
	for _, method := range root.Get("method_config").List() {
		g.method(method)
	}
	for _, balancing := range append(root.Get("load_balancing_config").List(), root.Get("load_balancing_policy")) {
		balancing.Leave("of two random endpoints, the one with fewer requests in flight is used", "")
	}
	g.fallback()
	g.nothing = len(g.config.Routes) == 0 && g.base.Health == nil && g.base.Retry.Ratio == 0
	slices.SortStableFunc(g.config.Routes, func(x, y config.Route) int { return rank(x) - rank(y) })
	return g.done(roots)
}

// rank orders routes as grpc looks for names.
func rank(r config.Route) int {
	switch {
	case r.Exact:
		return 0
	case r.Path != "":
		return 1
	default:
		return 2
	}
}

// grpcImport is what is known while methods are read.
type grpcImport struct {
	*builder

	base *config.Cluster // what the clusters of all methods have
	all  bool            // some method config is for all methods
}

func (g *grpcImport) throttling(c document.Part) {
	if !c.There() {
		g.Notef("retryThrottling is missing, and grpc would retry without bound: retries are bound to 0.1 for each request, the default of retry.ratio")
		return
	}
	ratio := c.Get("token_ratio")
	if f, ok := ratio.Number(); !ok || f <= 0 {
		ratio.Leave("it must be above 0", "")
	} else {
		assign(g.builder, g.base, ratio, "retry.ratio", "ratio limits the retries per request; grpc stops while half of the tokens are spent", f)
	}
	c.Get("max_tokens").Leave("the budget holds 1000 times retry.ratio, and begins empty", "")
}

func (g *grpcImport) health(c document.Part) {
	if !c.There() {
		return
	}
	next := config.Clone(g.base)
	next.Health = &config.Health{Type: "grpc", Service: c.Text()}
	try(g.builder, g.base, next, c, "health.service", "the proxy asks each endpoint again and again, and does not keep a stream")
}

// method imports a method config: a cluster, and a route for each name.
func (g *grpcImport) method(c document.Part) {
	x := config.Clone(g.base)
	g.retry(x, c.Get("retry_policy"))
	c.Get("hedging_policy").Leave("the proxy does not send a request twice at once", "retries, after a rejection")
	for _, field := range []string{"max_request_message_bytes", "max_response_message_bytes"} {
		c.Get(field).Leave("messages are not taken apart", "max_body_bytes of a listener bounds all of a request")
	}
	wait := c.Get("wait_for_ready")
	if wait.Text() == "false" {
		wait.Carry("the default")
	}
	wait.Leave("calls do not wait until there is an endpoint", "retry, which tries another endpoint")
	var base config.Route
	put(g.builder, &base, c.Get("timeout"), "timeout", "")
	names := c.Get("name").List()
	var routes []config.Route
	for _, name := range names {
		if r, ok := g.name(base, name); ok {
			routes = append(routes, r)
		}
	}
	if len(routes) == 0 {
		c.Leave("the method config is of no method", "")
		return
	}
	cluster := g.place(x)
	for _, r := range routes {
		r.Cluster = cluster
		g.config.Routes = append(g.config.Routes, r)
	}
}

func (g *grpcImport) name(r config.Route, c document.Part) (config.Route, bool) {
	service, method := c.Get("service"), c.Get("method")
	path := ""
	switch {
	case service.Text() != "":
		path = "/" + service.Text() + "/" + method.Text()
	case method.Text() != "":
		c.Leave("a method without a service", "")
		return r, false
	}
	exact := method.Text() != ""
	if slices.ContainsFunc(g.config.Routes, func(o config.Route) bool { return o.Path == path && o.Exact == exact }) {
		c.Leave("another method config has the same name", "")
		return r, false
	}
	if strings.ContainsAny(path, "?#% ") {
		c.Leave("it is no name of a service", "")
		return r, false
	}
	r.Path, r.Exact = path, exact
	g.all = g.all || path == ""
	c.Carry("routes[].path")
	return r, true
}

func (g *grpcImport) retry(x *config.Cluster, c document.Part) {
	if !c.There() {
		return
	}
	x.Retry.Mode = "enforce"
	attempts := c.Get("max_attempts")
	if n, ok := attempts.Count(); ok && n > maxAttemptsOfGRPC {
		reason := fmt.Sprintf("it counts as %d, as it does for grpc", maxAttemptsOfGRPC)
		assign(g.builder, x, attempts, "retry.max_attempts", reason, maxAttemptsOfGRPC)
	} else {
		put(g.builder, x, attempts, "retry.max_attempts", "")
	}
	const wait = "the wait before a retry is drawn between nothing and it, where grpc stays within 20 % of it"
	put(g.builder, x, c.Get("initial_backoff"), "retry.base", wait)
	put(g.builder, x, c.Get("max_backoff"), "retry.max", wait)
	multiplier := c.Get("backoff_multiplier")
	first, _ := c.Get("initial_backoff").Duration()
	if most, ok := c.Get("max_backoff").Duration(); ok && most <= first && multiplier.There() {
		multiplier.Carry("retry.max, which is no longer than retry.base")
	}
	if f, ok := multiplier.Number(); ok && f == 2 {
		multiplier.Carry("retry.base doubles before each further retry")
	}
	multiplier.Leave("retry.base doubles before each further retry", "")
	for _, code := range c.Get("retryable_status_codes").List() {
		statusCode(code)
	}
	c.Get("per_attempt_recv_timeout").Leave("an attempt has all the time that the request has left", "response_timeout of the cluster")
}

func statusCode(c document.Part) {
	switch strings.ToUpper(c.Text()) {
	case "UNAVAILABLE", "14":
		c.Change("retry.mode", "a call that reached the server is sent again only if the answer invites to, by grpc-retry-pushback-ms")
	case "RESOURCE_EXHAUSTED", "8":
		c.Change("retry.mode", "a call is sent again only if the answer invites to, by grpc-retry-pushback-ms")
	default:
		c.Leave("a call that may have done its work is not sent again", "retries in the client, which knows what its calls do")
	}
}

// fallback is the route of all other methods, which grpc does not retry.
func (g *grpcImport) fallback() {
	if len(g.config.Routes) == 0 || g.all {
		return
	}
	g.config.Routes = append(g.config.Routes, config.Route{Cluster: g.place(config.Clone(g.base))})
}
