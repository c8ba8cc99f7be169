package docs

import (
	"github.com/seed90641741/spillway/cost"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/quota"
)

// costs returns gates whose quotas charge the processor time that a customer's calls take.
func costs() (*ingress.Server, error) {
	costs, err := cost.New(cost.Config{})
	if err != nil {
		return nil, err
	}
	local, err := quota.NewLocal(quota.LocalConfig{
		Customers: map[string]quota.Limit{"mail": {Rate: 500}}, // ms of processor time per second: half a processor
	})
	if err != nil {
		return nil, err
	}
	gates, err := ingress.New(ingress.Config{Quota: quota.Config{Allocator: local}, Costs: costs})
	if err != nil {
		return nil, err
	}
	return gates, nil
}
