package config

import (
	"errors"
	"strings"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/budget"
)

func (k *checker) cluster(at string, x *Cluster) {
	if x.Name == "" {
		k.failf(at+".name", "is missing")
	}
	k.endpoints(at+".endpoints", x.Endpoints)
	k.balance(at, x)
	k.shared(at+".quota", x.Name, x.Quota)
	k.learnCosts(at+".learn_costs", x)
	k.maxByKey(at+".shed.max_in_flight_by_key", x.Name, &x.Shed, k.limitKeys(x.Name)...)
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
