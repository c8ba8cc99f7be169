package config

import (
	"cmp"
	_ "embed"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/policyconf"
	"github.com/seed90641741/spillway/cmd/spillway/internal/strict"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/quota/fleet"
)

// QuotaSchema is the JSON schema of a [QuotaServer].
//
//go:embed quotaserver.json
var QuotaSchema string

// A QuotaServer is the file of "spillway quota".
type QuotaServer struct {
	Domain         string                      `yaml:"domain" jsonschema_description:"The only domain that is served, and the name of the quota: servers, proxies and programs with the same one share it. It must be 1 to 200 bytes without braces. Changes take effect after a restart." default:"Empty means that Envoys may name any; with redis it must be given."`
	Tasks          int                         `yaml:"tasks" sets:"fleet.Config.Tasks" jsonschema_description:"About how many Envoys and other tasks there are. A task that has no levels grants each customer its limit divided by this."`
	Interval       time.Duration               `yaml:"interval" zero:"1s" sets:"fleet.Config.Interval" jsonschema_description:"How often demand is compared. It should be at least the reporting_interval of the Envoys." default:"0 is 1s; it must be 50ms to 10s."`
	Hold           time.Duration               `yaml:"hold" sets:"fleet.Config.Hold" jsonschema_description:"How long a task keeps its last share when the servers of Redis are away."`
	Grace          time.Duration               `yaml:"grace" sets:"fleet.Config.Grace" jsonschema_description:"How long the others reserve the share of a task that is silent."`
	LeastDepth     float64                     `yaml:"least_depth" sets:"fleet.Config.LeastDepth" jsonschema_description:"The cost that a customer's bucket in one task holds at least."`
	BurstSeconds   float64                     `yaml:"burst_seconds" sets:"fleet.Config.BurstSeconds" jsonschema_description:"How many seconds of its rate an idle customer saves up."`
	Capacity       float64                     `yaml:"capacity" sets:"quota.LocalConfig.Capacity" jsonschema_description:"Cost per second of all customers together, shared by weight."`
	Customers      map[string]policyconf.Limit `yaml:"customers" sets:"quota.LocalConfig.Customers" jsonschema_description:"Limits of customers by name, in all Envoys together." default:"Empty means none."`
	DefaultLimit   policyconf.Limit            `yaml:"default_limit" sets:"quota.LocalConfig.DefaultLimit" jsonschema_description:"Limit of each other customer." default:"Empty means no limit."`
	UnlistedTotal  policyconf.Limit            `yaml:"unlisted_total" sets:"quota.LocalConfig.UnlistedTotal" jsonschema_description:"Limit of all other customers together, and of requests without a customer." default:"Empty means no limit."`
	CustomerKey    string                      `yaml:"customer_key" zero:"customer" jsonschema_description:"Key of the customer's name in ids of buckets and in descriptors. The default is customer."`
	CriticalityKey string                      `yaml:"criticality_key" zero:"criticality" jsonschema_description:"Key of the criticality, such as SHEDDABLE_PLUS. Without one, or with another value, it is CRITICAL. The default is criticality."`
	Redis          *policyconf.Redis           `yaml:"redis" jsonschema_description:"Servers of Redis (5 and later) or Valkey, through which several servers share the limits. Changes take effect after a restart."`
	TLS            *ServerTLS                  `yaml:"tls" jsonschema_description:"Certificate for Envoys, in place of --cert, --key and --client-ca. Changes take effect after a restart, those of its files at once."`
	Admin          Admin                       `yaml:"admin" jsonschema_description:"Where operators look, and who may make changes. The default of address is 127.0.0.1:18082 here."`
}

// ParseQuotaServer reads and checks the file of "spillway quota", as [Parse] does that of the proxy.
func ParseQuotaServer(name string, text []byte) (*QuotaServer, error) {
	q := new(QuotaServer)
	return q, decode(name, text, q, q.check, func() strict.Errors { return nil })
}

// OpenQuotaServer reads the file of a name.
func OpenQuotaServer(name string) (*QuotaServer, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return ParseQuotaServer(name, text)
}

// Defaulted returns q with its defaults, but without those of the library.
func (q *QuotaServer) Defaulted() *QuotaServer { return defaulted(q) }

// Files returns the names of all other files that q names.
func (q *QuotaServer) Files() []string { return files(q) }

// Engine returns how servers share the limits.
func (q *QuotaServer) Engine() *policyconf.Engine {
	return &policyconf.Engine{Domain: q.Domain, Redis: q.Redis}
}

// Fleet returns the configuration of a server as a task.
func (q *QuotaServer) Fleet() fleet.Config {
	c := policyconf.Fill[fleet.Config](*q)
	c.Interval = cmp.Or(c.Interval, time.Second)
	c.Limits = policyconf.Fill[quota.LocalConfig](*q)
	return c
}

// check returns what is wrong with a file.
func (q *QuotaServer) check() strict.Errors {
	k := &checker{config: new(Config)}
	strict.Visit("", reflect.ValueOf(q).Elem(), nil, k.field)
	if needed := q.Redis != nil; needed && q.Domain == "" || len(q.Domain) > maxQuotaDomain || strings.ContainsAny(q.Domain, "{}") {
		k.failf("domain", "is %.32q, must be 1 to %d bytes without braces", q.Domain, maxQuotaDomain)
	}
	if q.Redis != nil {
		k.redis("redis", q.Redis)
	}
	whole := policyconf.Quota{Customers: q.Customers, DefaultLimit: q.DefaultLimit, UnlistedTotal: q.UnlistedTotal}
	if name := whole.OfOneProcess(); name != "" {
		k.failf(name, "is given, but only a quota of one process has it: leave it out")
	}
	if q.limitsNone() {
		k.failf("", "limits no customer: set customers, default_limit or unlisted_total")
	}
	_, err := quota.NewLocal(q.Fleet().Limits)
	policy[quota.LocalConfig](k, "", *q, err)
	if err == nil {
		_, err = fleet.NewTable(q.Fleet(), nil)
		policy[fleet.Config](k, "", *q, err)
	}
	return k.errs
}

// limitsNone reports whether all customers of all Envoys could do as they like, as with an empty file.
func (q *QuotaServer) limitsNone() bool {
	return len(q.Customers) == 0 && q.DefaultLimit.Rate == 0 && q.UnlistedTotal.Rate == 0 && q.Capacity == 0
}

// Warnings returns what is allowed in a good file, and is probably not meant.
func (q *QuotaServer) Warnings() strict.Errors {
	k := &checker{}
	if q.DefaultLimit.Rate == 0 && q.UnlistedTotal.Rate == 0 && q.Capacity == 0 {
		k.failf("customers", "are the only ones with a limit: set default_limit or unlisted_total, or clients evade it under another name")
	}
	if q.Tasks == 0 {
		k.failf("tasks", "is not given: without levels each Envoy grants a tenth of a limit")
	}
	if q.Redis != nil && q.Redis.TLS == nil && q.Redis.PasswordFile != "" {
		k.failf("redis.password_file", "is sent in the clear: set redis.tls")
	}
	return k.errs
}

// DiffQuotaServers describes the changes from a to b, as [Diff] does.
func DiffQuotaServers(a, b *QuotaServer) []string { return diff(a, b) }

// Restart returns the fields that have changed from q to next, and that count from the next start on.
func (q *QuotaServer) Restart(next *QuotaServer) (fields []string) {
	if q.Domain != next.Domain {
		fields = append(fields, "domain")
	}
	if !reflect.DeepEqual(q.Redis, next.Redis) {
		fields = append(fields, "redis")
	}
	if (q.TLS == nil) != (next.TLS == nil) {
		fields = append(fields, "tls")
	}
	return slices.Clip(fields)
}
