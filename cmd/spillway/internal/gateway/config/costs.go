package config

import (
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/policyconf"
	"github.com/seed90641741/spillway/cost"
)

// LearnCosts says how the cost of requests is learned.
type LearnCosts struct {
	By       string        `yaml:"by" jsonschema:"enum=customer,enum=route" jsonschema_description:"customer, the default: each customer has a cost, those with a limit by name first. route: each route has a cost, which all its customers pay."`
	Unit     time.Duration `yaml:"unit" sets:"cost.Config.Unit" jsonschema_description:"Processor time that is one unit of cost. An endpoint counts as one processor, however many it has."`
	MaxKeys  int           `yaml:"max_keys" sets:"cost.Config.MaxKeys" jsonschema_description:"Most customers or routes with a cost each; requests of all others cost quota.cost. Half of them are for customers with a limit by name."`
	MaxError float64       `yaml:"max_error" sets:"cost.Config.MaxError" jsonschema_description:"Relative standard error up to which a cost is charged."`
}

// CostInterval is how often costs are learned. Endpoints must report at least as often: gRPC and
// Envoy average what they report over about a second.
const CostInterval = 5 * time.Second

// Estimator returns an estimator of costs that learns from processor times of the endpoints.
func (l *LearnCosts) Estimator(cpu func() (time.Duration, error)) (*cost.Estimator, error) {
	c := policyconf.Fill[cost.Config](*l)
	c.CPU, c.Interval = cpu, CostInterval
	return cost.New(c)
}

func (k *checker) learnCosts(at string, x *Cluster) {
	l := x.LearnCosts
	if l == nil {
		return
	}
	_, err := l.Estimator(nil)
	policy[cost.Config](k, at, *l, err)
	reports := x.Balance.LoadReports
	switch {
	case x.Quota == nil:
		k.failf(at, "is given, but the cluster has no quota, which would charge the costs")
	case x.ReportsCost:
		k.failf(at, "is given, but reports_cost has the endpoints report what each request has cost: leave one of them out")
	case reports == nil:
		k.failf(at, "is given, but needs balance.load_reports, by which the endpoints report their cpu_utilization")
	case reports.OutOfBandPeriod > CostInterval:
		k.failf(at, "is given, but balance.load_reports.oob_reporting_period is %v, must be at most %v to learn costs", reports.OutOfBandPeriod, CostInterval)
	}
	for _, i := range k.to[x.Name] {
		if cost := k.routes[i].Cost; cost != 0 {
			k.failf(at, "is given, but routes[%d].cost is %v: leave one of them out", i, cost)
		}
	}
}
