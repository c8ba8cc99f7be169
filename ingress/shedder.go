package ingress

import (
	"errors"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/internal/invalid"
	"github.com/seed90641741/spillway/shed"
)

// shedder is a limit on the requests at work and the waiting queue before it.
type shedder struct {
	*shed.Shedder
	limit    *concurrency.Limiter
	observer *shed.Shedder // what decides in the mode observe, with the same limit; else nil
}

func newShedder(c shed.Config, l concurrency.Config, mode spillway.Mode) (s shedder, err error) {
	if s.limit, err = concurrency.New(l); err != nil {
		return s, invalid.In("ingress", "Concurrency", err)
	}
	c.Limit = s.limit
	if s.Shedder, err = shed.New(c); err != nil {
		return s, invalid.In("ingress", "Shed", err)
	}
	if mode == spillway.ModeObserve {
		s.observer, err = shed.New(c)
	}
	return s, err
}

// asked returns the Shedder that decides now.
func (s shedder) asked() *shed.Shedder {
	if s.observer != nil {
		return s.observer
	}
	return s.Shedder
}

// adopt returns old, which lives on, in the mode of s. What a Shedder has learned while it observed ends with that mode: it held no request back.
func (s shedder) adopt(old shedder) shedder {
	if s.observer == nil || old.observer == nil {
		old.observer = s.observer
	}
	return old
}

func (s shedder) update(c shed.Config, l concurrency.Config) error {
	c.Limit = s.limit
	err := errors.Join(s.Shedder.Update(c), s.limit.Update(l))
	if s.observer != nil {
		err = errors.Join(err, s.observer.Update(c))
	}
	return err
}
