package upstream

import (
	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cost"
	"github.com/seed90641741/spillway/ingress"
)

// Learned is what a cluster learns of the cost of requests. The gates of the cluster share it, as its
// endpoints work for all of them. The zero value learns nothing.
type Learned struct {
	config    config.LearnCosts
	estimator *cost.Estimator // nil: nothing is learned
}

// Learn returns what learns the costs of requests with a configuration, which may be nil: kept, if
// it has the same one.
func (x *Cluster) Learn(kept Learned, c *config.LearnCosts) (Learned, error) {
	if c == nil {
		return Learned{}, nil
	}
	if kept.estimator != nil && kept.config == *c {
		return kept, nil
	}
	estimator, err := c.Estimator(x.Processor)
	return Learned{*c, estimator}, err
}

// To has a gate charge what is learned.
func (l Learned) To(c *ingress.Config) {
	c.Costs = l.estimator
	if l.config.By == "route" {
		c.CostKey = func(call spillway.Call) string { return call.Key }
	}
}

// Stats returns what is known.
func (l Learned) Stats() (s cost.Stats) {
	if l.estimator != nil {
		s = l.estimator.Stats()
	}
	return s
}
