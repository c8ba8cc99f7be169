package process

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cost"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/spillhttp"
)

// The customers of a Backend with a Quota. A call of the first one does the work of a call, and
// one of the second does Expensive times as much.
const (
	CheapCustomer     = "cheap"
	ExpensiveCustomer = "expensive"
	Expensive         = 10
)

// CustomerHeader is the header in which a caller names itself.
const CustomerHeader = "X-Customer"

// CostsPath is the path at which a Backend with a Quota reports the [cost.Stats] that it has
// learned, as JSON.
const CostsPath = "/costs"

// serveCustomers serves from ln with a quota for each customer. The quota counts calls, or
// learned processor time.
func (b Backend) serveCustomers(ln net.Listener) error {
	limit := quota.Limit{Rate: b.Quota}
	local, err := quota.NewLocal(quota.LocalConfig{Customers: map[string]quota.Limit{CheapCustomer: limit, ExpensiveCustomer: limit}})
	if err != nil {
		return err
	}
	costs, err := cost.New(cost.Config{Unit: b.Service})
	if err != nil {
		return err
	}
	config := ingress.Config{Quota: quota.Config{Allocator: local}, ShedMode: spillway.ModeOff}
	if b.Learn {
		config.Costs = costs
	}
	gates, err := ingress.New(config)
	if err != nil {
		return err
	}
	return protect(ln, b.customers(costs), spillhttp.HandlerConfig{
		Ingress:  gates,
		Classify: func(r *http.Request) spillway.Call { return spillway.Call{Customer: r.Header.Get(CustomerHeader)} },
		Exempt:   func(r *http.Request) bool { return r.URL.Path == CostsPath },
	})
}

func (b Backend) customers(costs *cost.Estimator) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == CostsPath {
			_ = json.NewEncoder(w).Encode(costs.Stats(time.Now())) // fails only if the client has left
			return
		}
		if r.Context().Err() != nil {
			return // the client is gone
		}
		rounds := b.Rounds
		if r.Header.Get(CustomerHeader) == ExpensiveCustomer {
			rounds *= Expensive
		}
		burn(rounds)
		_, _ = io.WriteString(w, "done\n") // a client that has left does not read it
	})
}
