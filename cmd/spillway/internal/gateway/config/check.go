package config

import (
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/seed90641741/spillway/attempts"
	"github.com/seed90641741/spillway/cmd/spillway/internal/policyconf"
	"github.com/seed90641741/spillway/cmd/spillway/internal/strict"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/throttle"
)

// Check returns what is wrong with a configuration, as [strict.Errors]. It looks at no
// other file and opens no port.
func (c *Config) Check() error {
	return c.check().Err()
}

func (c *Config) check() strict.Errors {
	k := newChecker(c)
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
	k.loops()
	return k.errs
}

// checkPart returns what is wrong with the single values and the names in a configuration of which some fields could not
// be read: what does not follow from those.
func (c *Config) checkPart() strict.Errors {
	k := newChecker(c)
	strict.Visit("", reflect.ValueOf(c).Elem(), nil, func(path string, v reflect.Value, tag reflect.StructTag) {
		if r, ok := reflect.TypeAssert[Route](v); ok {
			k.references(path, &r)
		} else if v.Kind() != reflect.Struct && v.Kind() != reflect.Pointer && !v.IsZero() {
			k.field(path, v, tag)
		}
	})
	return k.errs
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
	case float64:
		if tag.Get("limiter") != "" {
			k.limiter(path, x)
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
		if x.Optional && x.ClientCA == "" {
			k.failf(path+".optional", "is true, but there is no client_ca")
		}
	case *ClientTLS:
		k.pair(path, x.Certificate, x.Key, false)
	case Admin:
		k.admin(&x)
	case *Otel:
		k.otel(x)
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
		if a.TLS != nil {
			k.failf("admin.tls", "is given, but a Unix socket is in the clear; leave it out")
		}
	} else if a.Address != "" && a.Address != "off" {
		k.address("admin.address", a.Address, true)
	}
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
	graph
}

func newChecker(c *Config) *checker {
	return &checker{config: c, shares: make(map[string]string), graph: newGraph(c.Defaulted())}
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
