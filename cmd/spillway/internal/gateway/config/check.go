package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/attempts"
	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/cmd/spillway/internal/policyconf"
	"github.com/seed90641741/spillway/cmd/spillway/internal/strict"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/internal/claims"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/throttle"
)

// Check returns what is wrong with a configuration, as [strict.Errors]. It looks at no
// other file and opens no port.
func (c *Config) Check() error {
	k := checker{config: c}
	k.check()
	return k.errs.Err()
}

// check checks all of it.
func (k *checker) check() {
	c := k.config
	k.shares, k.routes = make(map[string]string), c.Defaulted().Routes
	strict.Visit("", reflect.ValueOf(c).Elem(), nil, k.field)
	if len(c.Mongo) == 0 || len(c.Listeners)+len(c.Clusters) > 0 {
		k.some("listeners", len(c.Listeners))
		k.some("clusters", len(c.Clusters))
	}
	if len(c.Routes) == 0 && len(c.Clusters) > 1 {
		k.failf("routes", "is missing, must say what goes to which of the %d clusters", len(c.Clusters))
	}
	unique(k, "listeners", "name", c.Listeners, func(_ int, l *Listener) string { return l.Defaulted().Name })
	unique(k, "listeners", "address", c.Listeners, func(i int, l *Listener) string { return portZero(l.Address, i) })
	unique(k, "clusters", "name", c.Clusters, func(_ int, x *Cluster) string { return x.Name })
	unique(k, "mongo", "name", c.Mongo, func(_ int, m *Mongo) string { return m.Defaulted().Name })
	unique(k, "mongo", "address", c.Mongo, func(i int, m *Mongo) string { return portZero(m.Address, i) })
}

// field checks a field by its type and its tags, which have the words of its schema, and the range of a
// number. Zero is the default, unless the field is required.
func (k *checker) field(path string, v reflect.Value, tag reflect.StructTag) {
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return
	}
	if allowed := tag.Get("allowed"); allowed != "" && (!v.IsZero() || tag.Get("jsonschema") == "required") && !inRange(v, allowed) {
		k.failf(path, "is %v, must %s", v.Interface(), strings.Replace("be "+allowed, "be not", "not be", 1))
	}
	switch x := v.Interface().(type) {
	case Mode:
		if err := x.Check(); err != nil {
			k.failf(path, "%v", err)
		}
	case Class:
		if _, ok := x.Criticality(); !ok && x != "" {
			k.failf(path, "is %.32q, must be CRITICAL_PLUS, CRITICAL, SHEDDABLE_PLUS or SHEDDABLE", x)
		}
	case string:
		if _, words, ok := strings.Cut(tag.Get("jsonschema"), "enum="); ok {
			k.oneOf(path, x, strings.Split(words, ",enum=")...)
		}
	default:
		k.section(path, x)
	}
}

// section checks a struct: by itself, or with the policies that it is for.
func (k *checker) section(path string, section any) {
	switch x := section.(type) {
	case *ServerTLS:
		k.pair(path, x.Certificate, x.Key, true)
	case *ClientTLS:
		k.pair(path, x.Certificate, x.Key, false)
	case Admin:
		k.admin(&x)
	case *Otel:
		k.otel(x)
	case Log:
		k.lines(path+".rejections_per_second", x.Rejections)
	case *Access:
		k.lines(path+".lines_per_second", x.Rate)
	case *Traces:
		k.lines(path+".spans_per_second", x.Rate)
	case *XDS:
		k.xds(x)
	case Engine:
		k.engine(path, &x)
	case Listener:
		k.listener(path, &x)
	case Cluster:
		k.cluster(path, &x)
	case Route:
		k.route(path, &x)
	case Mongo:
		k.mongo(path, &x)
	case *Health:
		k.health(path, x)
	case RateLimit:
		k.each(path+".exempt", x.Exempt, isNetwork, "a network such as 10.0.0.0/8")
		try(k, path, x, ratelimit.New)
	case *Quota:
		k.quota(path, x)
	case Attempts:
		try(k, path, x, attempts.New)
	case Shed:
		k.shed(path, &x)
	case Throttle:
		try(k, path, x, throttle.New)
	case Inflight:
		try(k, path, x, inflight.New)
	}
}

func (k *checker) admin(a *Admin) {
	if path, ok := strings.CutPrefix(a.Address, "unix:"); ok {
		if len(path) == 0 || len(path) > maxSocketPath {
			k.failf("admin.address", "is %.64q, must be unix: and a path of 1 to %d bytes", a.Address, maxSocketPath)
		}
		k.absent("admin.tls", a.TLS == nil, "is given, but a Unix socket is in the clear; leave it out")
	} else if a.Address != "" && a.Address != "off" {
		k.address("admin.address", a.Address, true)
	}
	k.optional("admin.tls", a.TLS)
	k.each("admin.hosts", a.Hosts, func(name string) bool { return name != "" && !strings.ContainsAny(name, ":/* ") }, "a name, such as proxy.example.com")
}

// portZero makes addresses with port 0 unique: each gets another free port.
func portZero(address string, i int) string {
	if strings.HasSuffix(address, ":0") {
		return address + "#" + strconv.Itoa(i)
	}
	return address
}

// A checker collects the errors of a configuration.
type checker struct {
	config *Config
	errs   strict.Errors
	shares map[string]string // who shares a quota, by its domain
	routes []Route           // with their defaults
}

func (k *checker) failf(field, format string, args ...any) {
	k.errs.Add(failf(field, format, args...))
}

// policy notes what a policy finds wrong with its Config T, which was made of a section.
func policy[T any](k *checker, at string, section any, err error) {
	if err != nil {
		k.errs.Add(policyError[T](at, section, err))
	}
}

// try makes a policy of a section, and notes what it finds wrong. It returns the policy and true if all is good.
func try[T, P any](k *checker, at string, section any, build func(T) (P, error)) (P, bool) {
	p, err := build(policyconf.Fill[T](section))
	policy[T](k, at, section, err)
	return p, err == nil
}

func (k *checker) oneOf(field, value string, words ...string) {
	if value != "" && !slices.Contains(words, value) {
		k.failf(field, "is %.32q, must be %s", value, strings.Join(words, " or "))
	}
}

// each checks the elements of a list.
func (k *checker) each(list string, all []string, good func(string) bool, must string) {
	for i, text := range all {
		if !good(text) {
			k.failf(fmt.Sprintf("%s[%d]", list, i), "is %.64q, must be %s", text, must)
		}
	}
}

func isNetwork(text string) bool {
	p, err := netip.ParsePrefix(text)
	return err == nil && !p.Addr().Is4In6() // no address is in such a network: they are IPv4
}

func (k *checker) some(field string, n int) {
	if n == 0 {
		k.failf(field, "is missing, must have one at least")
	}
}

// unique checks that no two elements of a list have the same value of a field.
func unique[T any](k *checker, list, field string, all []T, value func(i int, x *T) string) {
	seen := make(map[string]int, len(all))
	for i := range all {
		v := value(i, &all[i])
		if first, again := seen[v]; again {
			k.failf(fmt.Sprintf("%s[%d].%s", list, i, field), "is %.64q, as that of %s[%d] is", v, list, first)
		}
		seen[v] = i
	}
}

// endpoints checks the addresses of servers, one at least. None may be there twice: what is known of an
// endpoint, such as its health, is kept by its address.
func (k *checker) endpoints(list string, all []string) {
	k.some(list, len(all))
	seen := make(map[string]int, len(all))
	for i, address := range all {
		field := fmt.Sprintf("%s[%d]", list, i)
		k.address(field, address, false)
		if first, again := seen[address]; again {
			k.failf(field, "is %.64q, as %s[%d] is", address, list, first)
		}
		seen[address] = i
	}
}

func (k *checker) address(field, address string, free bool) {
	host, port, err := net.SplitHostPort(address)
	n, bad := strconv.ParseUint(port, 10, 16)
	switch {
	case address == "":
		k.failf(field, "is missing, must be a host and a port, such as 127.0.0.1:8080")
	case err != nil || bad != nil:
		k.failf(field, "is %.64q, must be a host and a port, such as 127.0.0.1:8080", address)
	case !free && (host == "" || n == 0 || strings.ContainsAny(host, "/ @")):
		k.failf(field, "is %.64q, must name a host and a port", address)
	}
}

func (k *checker) listener(at string, l *Listener) {
	k.address(at+".address", l.Address, true)
	for name := range l.Callers {
		if !claims.IsIdentity(name) {
			k.failf(at+".callers", "has %.64q, must begin with uri:, dns: or cn:, as uri:spiffe://shop/cart", name)
		}
	}
	k.each(at+".peers", l.Peers, isNetwork, "a network such as 10.0.0.0/8")
	if len(l.Callers) > 0 && (l.TLS == nil || l.TLS.ClientCA == "") {
		k.failf(at+".callers", "is given, but without tls.client_ca no caller proves its name")
	}
	if l.Boundary == "internal" && len(l.Peers) == 0 && (l.TLS == nil || l.TLS.ClientCA == "") {
		k.failf(at+".boundary", "is internal, but anybody can connect; set tls.client_ca, or peers to the networks of callers, or use edge")
	}
	if l.Boundary != "internal" {
		const ignored = "is given, but at an edge no class that a client says is believed; leave it out, or set boundary: internal"
		k.absent(at+".others", l.Others == "", ignored)
		k.absent(at+".callers", len(l.Callers) == 0, ignored)
	}
	k.optional(at+".tls", l.TLS)
	k.oneOf(at+".connection_rate.mode", string(l.ConnectionRate.Mode), "off", "enforce")
}

// absent reports a field that would have no effect, unless it is not given.
func (k *checker) absent(field string, is bool, why string) {
	if !is {
		k.failf(field, "%s", why)
	}
}

func (k *checker) optional(at string, t *ServerTLS) {
	if t != nil && t.Optional && t.ClientCA == "" {
		k.failf(at+".optional", "is true, but there is no client_ca")
	}
}

// maxSocketPath is the longest path that fits into a sockaddr_un on all systems.
const maxSocketPath = 100

// pair reports a certificate without its key, a key without its certificate, and, if
// needed, that both are missing.
func (k *checker) pair(at, certificate, key string, needed bool) {
	switch {
	case certificate == "" && (needed || key != ""):
		k.failf(at+".certificate", "is missing, must be a file")
	case key == "" && (needed || certificate != ""):
		k.failf(at+".key", "is missing, must be a file")
	}
}

func (k *checker) cluster(at string, x *Cluster) {
	if x.Name == "" {
		k.failf(at+".name", "is missing")
	}
	k.endpoints(at+".endpoints", x.Endpoints)
	k.balance(at, x)
	k.shared(at+".quota", x.Name, x.Quota)
	k.learnCosts(at+".learn_costs", x)
	k.maxByKey(at+".shed.max_by_key", x.Name, &x.Shed, k.limitKeys(x.Name)...)
	k.batch(at+".batch", x)
	k.retry(at, x)
	k.tune(at+".tune", x)
	k.controlled(at, x)
}

func (k *checker) health(at string, h *Health) {
	d := Cluster{Health: h}.Defaulted().Health
	switch {
	case d.Type != "http" && h.Path != "":
		k.failf(at+".path", "is given, but type is %s", d.Type)
	case d.Type == "http" && (!strings.HasPrefix(d.Path, "/") || strings.ContainsFunc(d.Path, func(r rune) bool { return r <= ' ' || r > '~' })):
		k.failf(at+".path", "is %.64q, must begin with /, and have no spaces", h.Path)
	case d.Type == "tcp" && h.Host != "":
		k.failf(at+".host", "is given, but type is tcp")
	case strings.ContainsAny(h.Host, "/ @"):
		k.failf(at+".host", "is %.64q, must be a host", h.Host)
	case d.Type != "grpc" && h.Service != "":
		k.failf(at+".service", "is given, but type is %s", d.Type)
	case len(h.Service) > 1024:
		k.failf(at+".service", "has %d bytes, must have 1024 at most", len(h.Service))
	}
}

func (k *checker) batch(at string, x *Cluster) {
	if x.Batch == nil {
		return
	}
	b := x.Defaulted().Batch
	least := len(x.Subset())
	if x.Defaulted().Protocol == "auto" {
		least *= 2 // one of each protocol
	}
	if b.Connections < least || b.Connections > 1<<16 {
		k.failf(at+".connections", "is %d, must be %d (for %d endpoints) to %d", b.Connections, least, len(x.Endpoints), 1<<16)
	}
}

// retry checks how requests to a cluster are sent again.
func (k *checker) retry(at string, x *Cluster) {
	enforced := *k.config
	enforced.Mode = Mode(spillway.ModeEnforce.String()) // so that all of it is looked at
	trial := x.Defaulted()
	trial.Retry.Mode = ""
	if b := x.Retry.Budget; b != nil {
		if _, ok := try(k, at+".retry.budget", *b, budget.New); !ok {
			trial.Retry.Budget = nil // so that Egress does not report it again
		}
	}
	_, err := enforced.Egress(&trial)
	if e, ok := errors.AsType[*Error](err); ok {
		k.failf(at+"."+e.Field, "%s", e.Problem)
	}
}

func (k *checker) route(at string, r *Route) {
	for i, name := range r.Listeners {
		if !slices.ContainsFunc(k.config.Listeners, func(l Listener) bool { return l.Defaulted().Name == name }) {
			k.failf(fmt.Sprintf("%s.listeners[%d]", at, i), "is %.64q, which no listener is called", name)
		}
	}
	known := slices.ContainsFunc(k.config.Clusters, func(x Cluster) bool { return x.Name == r.Cluster })
	switch {
	case r.Cluster == "" && len(k.config.Clusters) > 1:
		k.failf(at+".cluster", "is missing, must be one of the %d clusters", len(k.config.Clusters))
	case r.Cluster != "" && !known:
		k.failf(at+".cluster", "is %.64q, which no cluster is called", r.Cluster)
	}
	if r.Path != "" && !strings.HasPrefix(r.Path, "/") {
		k.failf(at+".path", "is %.64q, must begin with /", r.Path)
	}
	if r.Exact && r.Path == "" {
		k.failf(at+".exact", "is true, but there is no path")
	}
	if strings.Contains(strings.TrimPrefix(r.Host, "*."), "*") || strings.ContainsAny(r.Host, ":/ ") && !strings.HasPrefix(r.Host, "[") {
		k.failf(at+".host", "is %.64q, must be a name, such as api.example.com or *.example.com", r.Host)
	}
	k.each(at+".methods", r.Methods, isToken, "a method, such as GET")
	for name := range r.Headers {
		if !isToken(name) {
			k.failf(at+".headers", "has %.64q, which is no name of a header", name)
		}
	}
	k.customer(at+".customer", r)
	k.exempt(at, r)
	k.each(at+".upgrades", r.Upgrades, isUpgrade, "a protocol such as websocket, and not h2c")
}

func isUpgrade(protocol string) bool {
	name, version, _ := strings.Cut(protocol, "/")
	return isToken(name) && (version == "" || isToken(version)) && !strings.EqualFold(name, "h2c")
}

// customer reports a source of the customer's name that any client could forge.
func (k *checker) customer(at string, r *Route) {
	c := r.Customer
	switch {
	case c.Header != "" && !isToken(c.Header):
		k.failf(at+".header", "is %.64q, which is no name of a header", c.Header)
	case c.Header != "" && c.Identity:
		k.failf(at+".header", "is given together with identity, must be one of them: who has no certificate has no name")
	case c.Header != "" && !c.Trusted && k.atEdges(r):
		k.failf(at+".trusted_header", "is missing: at an edge any client can send %.64q; "+
			"set it to true if something in front of the proxy sets or removes that header, or use identity", c.Header)
	case c.Trusted && c.Header == "":
		k.failf(at+".trusted_header", "is true, but there is no header")
	}
}

// atEdges reports whether all listeners of a route are edges.
func (k *checker) atEdges(r *Route) bool {
	return !slices.ContainsFunc(k.config.Listeners, func(l Listener) bool {
		return l.Boundary == "internal" && (len(r.Listeners) == 0 || slices.Contains(r.Listeners, l.Defaulted().Name))
	})
}

// exempt reports exempt paths that other requests could be made to match.
func (k *checker) exempt(at string, r *Route) {
	switch {
	case r.Prefix && !r.Exempt:
		k.failf(at+".prefix", "is true, but exempt is not; all other routes match prefixes unless exact is true")
	case r.Prefix && r.Exact:
		k.failf(at+".prefix", "is true, and so is exact; must be one of them")
	case r.Exempt && r.Path == "":
		k.failf(at+".exempt", "is true, but there is no path; set the path of the health check")
	case r.Prefix && !strings.HasSuffix(r.Path, "/"):
		k.failf(at+".path", "is %.64q, must end with / where prefix is true", r.Path)
	case r.Exempt && (strings.ContainsAny(r.Path, `;\%`) || path.Clean(r.Path) != strings.TrimSuffix(r.Path, "/") && r.Path != "/"):
		k.failf(at+".path", "is %.64q, must have none of ; \\ %% and no dot or empty segments where exempt is true", r.Path)
	}
}

// isToken reports whether s may be a method or the name of a header: RFC 9110,
// section 5.6.2.
func isToken(s string) bool { return httpguts.ValidHeaderFieldName(s) }
