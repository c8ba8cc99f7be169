package config

import (
	"github.com/seed90641741/spillway/cmd/spillway/internal/policyconf"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/load"
	"github.com/seed90641741/spillway/shed"
)

// shed checks the shedder and its load.
func (k *checker) shed(at string, x *Shed) {
	_, err := concurrency.New(policyconf.Fill[concurrency.Config](*x))
	policy[concurrency.Config](k, at, *x, err)
	_, err = shed.New(policyconf.Fill[shed.Config](*x))
	policy[shed.Config](k, at, *x, err)
	if err := x.Load.Combine.Check(); err != nil {
		k.failf(at+".load.combine", "%v", err)
	}
	m, err := load.New(policyconf.Fill[load.Config](*x))
	policy[load.Config](k, at, *x, err)
	if err == nil {
		_ = m.Close() // it was only tried
	}
}
