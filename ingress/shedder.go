package ingress

import (
	"errors"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/internal/invalid"
	"github.com/seed90641741/spillway/shed"
)

// shedder is a limit on the requests at work and the waiting queue before it.
type shedder struct {
	*shed.Shedder
	limit *concurrency.Limiter
}

// newShedder returns a shedder. keys is Config.LimitKey.
func newShedder(c shed.Config, l concurrency.Config, keys func(string) string) (s shedder, err error) {
	if s.limit, err = concurrency.New(l); err != nil {
		return s, invalid.In("ingress", "Concurrency", err)
	}
	c.Limit = s.limitOf(keys)
	if s.Shedder, err = shed.New(c); err != nil {
		return s, invalid.In("ingress", "Shed", err)
	}
	return s, nil
}

func (s shedder) update(c shed.Config, l concurrency.Config, keys func(string) string) error {
	c.Limit = s.limitOf(keys)
	return errors.Join(s.Shedder.Update(c), s.limit.Update(l))
}

// limitOf returns the limit as the Shedder knows it: by the keys of calls.
func (s shedder) limitOf(keys func(string) string) shed.Limit {
	if keys == nil {
		return s.limit
	}
	return named{s.limit, keys}
}

// A named is a limit on what requests wait for, where calls have other keys.
type named struct {
	*concurrency.Limiter
	of func(key string) string
}

func (n named) Ask(now time.Time, key string) spillway.Pace { return n.Limiter.Ask(now, n.of(key)) }

func (n named) Enter(now time.Time, call spillway.Call) spillway.Ticket {
	call.Key = n.of(call.Key)
	return n.Limiter.Enter(now, call)
}

func (n named) Take(now time.Time, key string, class spillway.Criticality, deadline time.Time) (spillway.Ticket, bool) {
	return n.Limiter.Take(now, n.of(key), class, deadline)
}
