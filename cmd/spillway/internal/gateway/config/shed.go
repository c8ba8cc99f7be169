package config

import (
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/load"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/shed"
)

func (k *checker) shed(at string, x *Shed) {
	try(k, at, *x, concurrency.New)
	try(k, at, *x, shed.New)
	if err := x.Load.Combine.Check(); err != nil {
		k.failf(at+".load.combine", "%v", err)
	}
	if m, ok := try(k, at, *x, load.New); ok {
		_ = m.Close() // it was only tried
	}
}

func (k *checker) quota(at string, q *Quota) {
	if local, ok := try(k, at, *q, quota.NewLocal); ok {
		try(k, at, *q, func(c quota.Config) (*quota.Quota, error) {
			c.Allocator = local
			return quota.New(c)
		})
	}
}
