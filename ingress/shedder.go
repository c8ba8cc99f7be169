package ingress

import (
	"errors"

	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/internal/invalid"
	"github.com/seed90641741/spillway/shed"
)

// shedder is a limit on the requests at work and the waiting queue before it.
type shedder struct {
	*shed.Shedder
	limit *concurrency.Limiter
}

func newShedder(c shed.Config, l concurrency.Config) (s shedder, err error) {
	if s.limit, err = concurrency.New(l); err != nil {
		return s, invalid.In("ingress", "Concurrency", err)
	}
	c.Limit = s.limit
	if s.Shedder, err = shed.New(c); err != nil {
		return s, invalid.In("ingress", "Shed", err)
	}
	return s, nil
}

func (s shedder) update(c shed.Config, l concurrency.Config) error {
	c.Limit = s.limit
	return errors.Join(s.Shedder.Update(c), s.limit.Update(l))
}
