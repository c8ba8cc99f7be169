package policyconf

import (
	"time"

	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/quota/fleet"
)

// Engine says how tasks share quotas: the settings of package fleet, and the servers through
// which the tasks exchange reports. The configuration of the proxy and the file of "spillway
// quota" have it.
type Engine struct {
	Domain     string        `yaml:"domain" jsonschema:"required" jsonschema_description:"Separates services that use the same servers: all tasks of a service have the same one. It must be 1 to 200 bytes without braces."`
	Tasks      int           `yaml:"tasks" sets:"fleet.Config.Tasks" jsonschema_description:"About how many tasks there are. A task that has no levels grants each customer its limit divided by this."`
	Interval   time.Duration `yaml:"interval" sets:"fleet.Config.Interval" jsonschema_description:"How often each task reports."`
	Hold       time.Duration `yaml:"hold" sets:"fleet.Config.Hold" jsonschema_description:"How long a task keeps its last share when the servers are away."`
	Grace      time.Duration `yaml:"grace" sets:"fleet.Config.Grace" jsonschema_description:"How long the others reserve the share of a task that is silent."`
	LeastDepth float64       `yaml:"least_depth" sets:"fleet.Config.LeastDepth" jsonschema_description:"The cost that a customer's bucket in one task holds at least."`
	Redis      *Redis        `yaml:"redis" jsonschema_description:"Servers of Redis (5 and later) or Valkey."`
}

// Redis says how to reach servers of Redis or Valkey.
type Redis struct {
	Addresses    []string   `yaml:"addresses" jsonschema:"required" jsonschema_description:"Host and port: one is a server, several are nodes of a cluster, and with master they are Sentinels."`
	Master       string     `yaml:"master" jsonschema_description:"Name of the master that Sentinel watches. Without it there is no Sentinel."`
	Username     string     `yaml:"username" jsonschema_description:"User of an ACL. It needs: ~spillway:* +evalsha +eval +time +hset +hget +hmget +hgetall +hdel +pexpire."`
	PasswordFile string     `yaml:"password_file" file:"true" jsonschema_description:"File with the password. It is read at the start and with each new configuration."`
	TLS          *ClientTLS `yaml:"tls" jsonschema_description:"Without it connections are in the clear."`
}

// ClientTLS is whom a client believes a server to be, and who the client is.
type ClientTLS struct {
	CA          string `yaml:"ca" file:"true" jsonschema_description:"File with the CA certificates that verify endpoints, in PEM; by default the system's CA certificates."`
	ServerName  string `yaml:"server_name" jsonschema_description:"The name in the certificate; the default is the host of the endpoint."`
	Certificate string `yaml:"certificate" file:"true" jsonschema_description:"File with the chain of the proxy itself, in PEM."`
	Key         string `yaml:"key" file:"true" jsonschema_description:"File with its key, in PEM."`
}

// Fleet returns the configuration of a task that shares a quota by the engine.
func (e *Engine) Fleet(q *Quota) fleet.Config {
	c := Fill[fleet.Config](*e)
	c.Limits = Fill[quota.LocalConfig](*q)
	c.BurstSeconds, c.MaxUnlisted = q.BurstSeconds, q.MaxUnlisted
	return c
}

// OfOneProcess returns the name of a setting that is given, but that only a quota of one
// process has. It returns "" if no such setting is given.
func (q *Quota) OfOneProcess() string {
	none := Classes{}
	switch {
	case q.Interval != 0:
		return "interval"
	case q.DefaultLimit.Shares != none:
		return "default_limit.shares"
	case q.UnlistedTotal.Shares != none:
		return "unlisted_total.shares"
	}
	for name, l := range q.Customers {
		if l.Shares != none {
			return "customers." + name + ".shares"
		}
	}
	return ""
}
