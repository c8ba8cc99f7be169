package config

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/budget"
	"github.com/seed90641741/spillway/cmd/spillway/internal/policyconf"
	"github.com/seed90641741/spillway/connlimit"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/retry"
)

// Mongo is a listener for clients of MongoDB, and the servers behind it.
type Mongo struct {
	Name           string        `yaml:"name" jsonschema_description:"For messages and metrics; the default is the address."`
	Address        string        `yaml:"address" jsonschema:"required" jsonschema_description:"Host and port, such as 127.0.0.1:27018; port 0 is any free one."`
	TLS            *ServerTLS    `yaml:"tls" jsonschema_description:"Clients connect by TLS, which ends here. Without it they connect in the clear."`
	TLSPassthrough bool          `yaml:"tls_passthrough" jsonschema_description:"Connections that begin with TLS go through unread, and meet the limits of connections only. Not with tls."`
	Endpoints      []string      `yaml:"endpoints" jsonschema:"required" jsonschema_description:"Host and port of the server, or of each of several mongos. All connections of a client go to the same one."`
	UpstreamTLS    *ClientTLS    `yaml:"upstream_tls" jsonschema_description:"To the servers. Without it connections are in the clear."`
	ConnectTimeout time.Duration `yaml:"connect_timeout" zero:"5s" allowed:"not negative" jsonschema_description:"To a server; 0 is 5s."`
	Topology       string        `yaml:"topology" zero:"hide" jsonschema:"enum=hide,enum=pass" jsonschema_description:"hide, the default: a member of a replica set looks like a mongos, so that drivers stay here. pass: drivers hear of the other members, and connect to them unless told directConnection=true."`
	Authentication bool          `yaml:"authentication" jsonschema_description:"The servers demand authentication. Commands before it are exempt from all gates, because the servers reject them; until it has authenticated, a connection may send messages of at most 16 KiB and 32 commands other than hello within 30s."`
	SharedX509     bool          `yaml:"shared_x509" jsonschema_description:"Clients may authenticate with MONGODB-X509: every client that can connect becomes the user of the certificate in upstream_tls. The default rejects it."`

	MaxConnections   int           `yaml:"max_connections" zero:"10000" jsonschema_description:"Open at once. When it is reached, a new connection replaces one of the address that has most, if that has at least double the number of the new client; otherwise it is reset. 0 is 10000, negative is no limit."`
	HandshakeTimeout time.Duration `yaml:"handshake_timeout" zero:"10s" jsonschema_description:"How long a client may take to send its first message; 0 is 10s, negative is no limit."`
	StallTimeout     time.Duration `yaml:"stall_timeout" zero:"30s" jsonschema_description:"How long a client may stall in the middle of a message that it sends or receives; 0 is 30s, negative is no limit."`
	IdleTimeout      time.Duration `yaml:"idle_timeout" zero:"1h" jsonschema_description:"Longest time between messages, and without any bytes where TLS is passed through; 0 is 1h, negative is no limit. Before authentication it is at most 5m."`

	Parameters  MongoParameters `yaml:"parameters" jsonschema_description:"The two ingress limiters, by the names that they have in a MongoDB server."`
	RequestMode Mode            `yaml:"request_mode" jsonschema_description:"Of the request limiter, where it is enabled."`
	Quota       *Quota          `yaml:"quota" jsonschema_description:"What each customer may use."`
	Shed        Shed            `yaml:"shed" jsonschema_description:"Rejects by criticality when the servers are overloaded."`
	Classes     []MongoClass    `yaml:"classes" jsonschema_description:"How much commands matter and whose they are; the first that matches counts."`
	Retry       MongoRetry      `yaml:"retry" jsonschema_description:"Client backpressure, for drivers that have none: commands that were rejected for overload are sent again."`
	Tune        *Tune           `yaml:"tune" jsonschema_description:"Moves ingressRequestAdmissionRatePerSec as the servers get slower or faster. Here limit is rate, latency is that of commands, and rejections are answers with SystemOverloadedError."`
}

// MongoParameters are parameters of a MongoDB server, with the server's names.
//
//nolint:tagliatelle // the server's own names
type MongoParameters struct {
	ConnectionEnabled bool     `yaml:"ingressConnectionEstablishmentRateLimiterEnabled" jsonschema_description:"Limit new connections per second. It has no mode but enforce and off."`
	ConnectionRate    float64  `yaml:"ingressConnectionEstablishmentRatePerSec" jsonschema_description:"0 is no limit."`
	ConnectionBurst   float64  `yaml:"ingressConnectionEstablishmentBurstCapacitySecs" jsonschema_description:"How many seconds' worth may come at once; 0 is 1."`
	ConnectionDepth   int      `yaml:"ingressConnectionEstablishmentMaxQueueDepth" jsonschema_description:"How many connections may wait; more are closed without a reply. 0 is none."`
	ConnectionBypass  []string `yaml:"ingressConnectionEstablishmentRateLimiterBypass" jsonschema_description:"Networks or addresses that have no limit, such as 10.0.0.0/8."`

	RequestEnabled      bool     `yaml:"ingressRequestRateLimiterEnabled" jsonschema_description:"Limit commands per second."`
	RequestRate         float64  `yaml:"ingressRequestAdmissionRatePerSec" jsonschema_description:"0 is no limit."`
	RequestBurst        float64  `yaml:"ingressRequestAdmissionBurstCapacitySecs" jsonschema_description:"How many seconds' worth may come at once; 0 is 1."`
	RequestDepth        int      `yaml:"ingressRequestAdmissionMaxQueueDepth" jsonschema_description:"How many commands may wait; 0 is none."`
	RequestExemptions   []string `yaml:"ingressRequestRateLimiterExemptions" jsonschema_description:"Networks or addresses that have no limit."`
	RequestApplications []string `yaml:"ingressRequestRateLimiterApplicationExemptions" jsonschema_description:"Prefixes of the names of applications, or of drivers, that have no limit. Any client can say these names."`
	AllowRetries        *bool    `yaml:"ingressRequestRateLimiterAllowRetries" jsonschema_description:"Rejections say that the command may be sent again; the default is true."`
	BaseBackoffMS       int      `yaml:"externalClientBaseBackoffMS" allowed:"0 to 10000" jsonschema_description:"Base of the backoff that rejections tell drivers; 0 is none."`
}

// A MongoClass has the criticality and the customer of the commands that match all its
// conditions.
type MongoClass struct {
	Applications []string `yaml:"applications" jsonschema_description:"Prefixes of the names that applications give themselves; without any, all."`
	Users        []string `yaml:"users" jsonschema_description:"Names of users that have authenticated; without any, all."`
	Databases    []string `yaml:"databases" jsonschema_description:"Names of databases that the commands go to; without any, all."`
	Criticality  Class    `yaml:"criticality" jsonschema_description:"How much the commands matter; the default is CRITICAL."`
	Customer     string   `yaml:"customer" jsonschema:"enum=user,enum=application,enum=database" jsonschema_description:"What identifies the customer, for quotas: user, application or database. By default the commands have no customer."`
}

// MongoRetry has the settings of retry.MongoDB, the strategy of listeners for MongoDB.
type MongoRetry struct {
	Mode          Mode          `yaml:"mode" jsonschema_description:"Only enforce sends commands again."`
	Revision      string        `yaml:"revision" zero:"2026-02" sets:"retry.MongoDBConfig.Revision" jsonschema:"enum=2026-02,enum=2026-07" jsonschema_description:"Revision of the specification."`
	MaxRetries    int           `yaml:"max_retries" sets:"retry.MongoDBConfig.MaxRetries" jsonschema_description:"Retries of a command after an overload."`
	OtherRetries  int           `yaml:"other_retries" sets:"retry.MongoDBConfig.OtherRetries" jsonschema_description:"Retries of a command before any overload."`
	Base          time.Duration `yaml:"base" sets:"retry.MongoDBConfig.Backoff.Base" jsonschema_description:"Longest wait before the first retry, doubled before each further one."`
	Max           time.Duration `yaml:"max" sets:"retry.MongoDBConfig.Backoff.Max" jsonschema_description:"Longest wait."`
	MaxRetryAfter time.Duration `yaml:"max_retry_after" sets:"retry.MongoDBConfig.MaxRetryAfter" jsonschema_description:"Longest hint of a server that is waited for."`
	MaxBytes      int           `yaml:"max_bytes" zero:"65536" allowed:"1024 to 16777216" jsonschema_description:"The longest command that is kept for a retry; 0 is 65536."`
	Budget        float64       `yaml:"budget" zero:"1000" sets:"budget.EndpointsConfig.Bucket.Capacity" jsonschema_description:"Tokens of each server: a retry costs 1, a success brings 0.1, and one on a retry 1.1." default:"Zero means 1000, negative means no limit; it must be at most 1e9."`
	Always        bool          `yaml:"always" jsonschema_description:"Also for drivers that have backpressure of their own. Their retries and these multiply."`
	NoReads       bool          `yaml:"no_reads" sets:"retry.MongoDBConfig.NoReads" jsonschema_description:"Reads are not sent again, as with retryReads=false." default:"The default is false."`
	NoWrites      bool          `yaml:"no_writes" sets:"retry.MongoDBConfig.NoWrites" jsonschema_description:"Writes are not sent again, as with retryWrites=false." default:"The default is false."`
}

// Defaulted returns m with its defaults.
func (m Mongo) Defaulted() Mongo {
	m.Name = cmp.Or(m.Name, m.Address)
	return *defaulted(&m)
}

// AllowsRetries reports whether rejections say that a command may be sent again.
func (m *Mongo) AllowsRetries() bool {
	return m.Parameters.AllowRetries == nil || *m.Parameters.AllowRetries
}

// Connections returns what of the listener concerns connections.
func (m *Mongo) Connections() connlimit.Config {
	p := &m.Parameters
	all := connlimit.Config{MaxOpen: m.MaxConnections}
	if p.ConnectionEnabled {
		all.Rate = mongoRate(p.ConnectionRate, p.ConnectionBurst, p.ConnectionDepth, p.ConnectionBypass)
	}
	return all
}

// Ingress returns what of the listener concerns commands.
func (m *Mongo) Ingress(c *Config) ingress.Config {
	p := &m.Parameters
	all := ingress.Config{RateLimitMode: c.modeOf(m.RequestMode), ProxyOnly: true}
	c.shed(&all, &m.Shed)
	c.quota(&all, m.Quota)
	if p.RequestEnabled {
		all.RateLimit = mongoRate(p.RequestRate, p.RequestBurst, p.RequestDepth, p.RequestExemptions)
		all.RateLimit.Exempt.Applications = p.RequestApplications
	}
	return all
}

// Strategy returns what sends commands again, nil if nothing does.
func (m *Mongo) Strategy(c *Config) (*retry.MongoDB, *budget.Endpoints, error) {
	r := m.Retry
	if c.modeOf(r.Mode) != spillway.ModeEnforce {
		return nil, nil, nil
	}
	o := policyconf.Fill[retry.MongoDBConfig](r)
	var paid *budget.Endpoints
	if r.Budget >= 0 {
		var err error
		if paid, err = budget.NewEndpoints(policyconf.Fill[budget.EndpointsConfig](r)); err != nil {
			return nil, nil, err
		}
		o.Budget = paid
	}
	s, err := retry.NewMongoDB(o)
	return s, paid, err
}

// mongoRate is a limiter of MongoDB's in the words of package ratelimit. What is more
// than that takes limits nothing.
func mongoRate(rate, burst float64, depth int, exempt []string) ratelimit.Config {
	const maxRate, day = 1e6, 86400
	c := ratelimit.Config{Rate: rate, BurstSeconds: burst, QueueDepth: depth}
	if rate > maxRate || burst > day {
		c.Rate, c.BurstSeconds = 0, 0
	}
	for _, text := range exempt {
		if network, err := parseNetwork(text); err == nil { // as Check has found it good
			c.Exempt.CIDRs = append(c.Exempt.CIDRs, network)
		}
	}
	return c
}

func parseNetwork(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		return a.Prefix(a.BitLen())
	}
	return netip.ParsePrefix(text)
}

// otherName rejects the name of an HTTP listener or of a cluster: names must be unique,
// because counters use them.
func (k *checker) otherName(at, name string) {
	if i := slices.IndexFunc(k.config.Listeners, func(l Listener) bool { return l.Name == name }); i >= 0 {
		k.failf(at, "is %.64q, as that of listeners[%d] is", name, i)
	}
	if i := slices.IndexFunc(k.config.Clusters, func(x Cluster) bool { return x.Name == name }); i >= 0 {
		k.failf(at, "is %.64q, as that of clusters[%d] is", name, i)
	}
}

func (k *checker) mongo(at string, m *Mongo) {
	k.otherName(at+".name", m.Defaulted().Name)
	k.address(at+".address", m.Address, true)
	if m.TLS != nil && m.TLSPassthrough {
		k.failf(at+".tls_passthrough", "is true, but with tls there is nothing to pass through")
	}
	k.endpoints(at+".endpoints", m.Endpoints)
	if m.SharedX509 && (m.UpstreamTLS == nil || m.UpstreamTLS.Certificate == "") {
		k.failf(at+".shared_x509", "is true, but upstream_tls has no certificate to share")
	}
	k.mongoParameters(at+".parameters", m)
	k.shared(at+".quota", m.Defaulted().Name, m.Quota)
	k.maxByKey(at+".shed.max_in_flight_by_key", m.Defaulted().Name, &m.Shed, m.Defaulted().Name)
	k.mongoRetry(at+".retry", m)
	k.mongoTune(at+".tune", m)
}

func (k *checker) mongoParameters(at string, m *Mongo) {
	p := &m.Parameters
	const network = "a network such as 10.0.0.0/8, or an address"
	k.each(at+".ingressConnectionEstablishmentRateLimiterBypass", p.ConnectionBypass, isNetworkOrAddress, network)
	k.each(at+".ingressRequestRateLimiterExemptions", p.RequestExemptions, isNetworkOrAddress, network)
	for i, name := range p.RequestApplications {
		if name == "" {
			k.failf(fmt.Sprintf("%s.ingressRequestRateLimiterApplicationExemptions[%d]", at, i), "is empty, must not be the prefix of every name")
		}
	}
	for _, l := range []struct {
		name        string
		rate, burst float64
		depth       int
	}{
		{"ingressConnectionEstablishment", p.ConnectionRate, p.ConnectionBurst, p.ConnectionDepth},
		{"ingressRequestAdmission", p.RequestRate, p.RequestBurst, p.RequestDepth},
	} {
		if _, err := ratelimit.New(mongoRate(l.rate, l.burst, l.depth, nil)); err != nil || l.rate < 0 {
			k.failf(at+"."+l.name+"RatePerSec", "is %v with a burst of %v s and a queue of %d, must be 0 or 1/86400 and more, "+
				"with a burst of one at least and a queue that is no longer than a day", l.rate, l.burst, l.depth)
		}
	}
}

func isNetworkOrAddress(text string) bool {
	p, err := parseNetwork(text)
	return err == nil && !p.Addr().Is4In6()
}

func (k *checker) mongoRetry(at string, m *Mongo) {
	if m.Retry.Budget >= 0 {
		if _, ok := try(k, at, m.Retry, budget.NewEndpoints); !ok {
			return
		}
	}
	trial := m.Defaulted()
	trial.Retry.Mode = Mode(spillway.ModeEnforce.String()) // so that all of it is looked at
	_, _, err := trial.Strategy(k.config)
	policy[retry.MongoDBConfig](k, at, m.Retry, err)
}
