package config

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/seed90641741/spillway/cmd/spillway/internal/policyconf"
	"github.com/seed90641741/spillway/quota/fleet"
)

// maxDomain is how long the domain of an engine may be. With the longest name of a cluster or
// listener it is a domain of package board.
const (
	maxDomain     = 100
	maxSharedName = 99
	// maxQuotaDomain is the maximum of package board.
	maxQuotaDomain = 200
	maxCustomer    = 255 // bytes, as in package fleet
	maxUnlisted    = 100_000
)

// SharedDomain returns the domain of the quota of a cluster, or of a listener for MongoDB: who has the
// same one shares the quota.
func SharedDomain(e *Engine, name string, q *Quota) string {
	return cmp.Or(q.Domain, e.Domain+"/"+name)
}

func (k *checker) engine(at string, e *Engine) {
	if e.Domain == "" || len(e.Domain) > maxDomain || strings.ContainsAny(e.Domain, "{}") {
		k.failf(at+".domain", "is %.32q, must be 1 to %d bytes without braces", e.Domain, maxDomain)
	}
	_, err := fleet.NewTable(e.Fleet(new(Quota)), nil)
	policy[fleet.Config](k, at, *e, err)
	if e.Redis == nil {
		k.failf(at+".redis", "is missing, must say which servers the proxies share")
		return
	}
	k.redis(at+".redis", e.Redis)
}

func (k *checker) redis(at string, r *policyconf.Redis) {
	k.endpoints(at+".addresses", r.Addresses)
	if r.Username != "" && r.PasswordFile == "" {
		k.failf(at+".password_file", "is missing, must be given with username")
	}
}

// shared checks a quota that an engine shares.
func (k *checker) shared(at, name string, q *Quota) {
	if q == nil {
		return
	}
	if q.Engine == "" {
		if q.Domain != "" {
			k.failf(at+".domain", "is %.64q, but without engine nothing is shared: leave it out", q.Domain)
		}
		return
	}
	e, ok := k.config.Quotas[q.Engine]
	local := q.OfOneProcess()
	switch {
	case !ok:
		k.failf(at+".engine", "is %.64q, must be one of quotas: %s", q.Engine, strings.Join(slices.Sorted(maps.Keys(k.config.Quotas)), ", "))
		return
	case local != "":
		k.failf(at+"."+local, "is given, but engine %s shares this quota: leave it out", q.Engine)
	case q.MaxUnlisted > maxUnlisted:
		k.failf(at+".max_unlisted", "is %d, must be at most %d where an engine shares the quota", q.MaxUnlisted, maxUnlisted)
		return
	case q.Domain == "" && (len(name) > maxSharedName || strings.ContainsAny(name, "{}")):
		k.failf(at+".engine", "is given for %.64q, whose name must have at most %d bytes and no braces, if there is no domain", name, maxSharedName)
	case len(q.Domain) > maxQuotaDomain || strings.ContainsAny(q.Domain, "{}"):
		k.failf(at+".domain", "is %.32q, must be 1 to %d bytes without braces", q.Domain, maxQuotaDomain)
	}
	domain := SharedDomain(&e, name, q)
	if other, ok := k.shares[domain]; ok {
		k.failf(at+".engine", "shares the quota %.64q, which %.64q shares in this process: give one of them another domain", domain, other)
	}
	k.shares[domain] = name
	for customer := range q.Customers {
		if customer == "" || len(customer) > maxCustomer {
			k.failf(at+".customers", "has %.64q, must have names of 1 to %d bytes where an engine shares the quota", customer, maxCustomer)
		}
	}
	_, err := fleet.NewTable(e.Fleet(q), nil)
	policy[fleet.Config](k, at, *q, err)
}

// SharedQuotas calls visit with each quota that an engine shares, and the name of its cluster or
// listener. Clusters come before listeners for MongoDB.
func (c *Config) SharedQuotas(visit func(name string, e *Engine, q *Quota)) {
	one := func(name string, q *Quota) {
		if q == nil || q.Engine == "" {
			return
		}
		e := c.Quotas[q.Engine]
		visit(name, &e, q)
	}
	for i := range c.Clusters {
		one(c.Clusters[i].Name, c.Clusters[i].Quota)
	}
	for i := range c.Mongo {
		one(c.Mongo[i].Name, c.Mongo[i].Quota)
	}
}
