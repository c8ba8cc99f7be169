package requests

import (
	"errors"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/internal/invalid"
	"github.com/seed90641741/spillway/shed"
)

// A Shedder is a limit on the requests at work and the waiting queue before it.
type Shedder struct {
	*shed.Shedder

	Limit    *concurrency.Limiter // of both Shedders; the shell tells it that the process runs
	observer *shed.Shedder        // decides in the mode observe; nil in the others
}

func newShedder(c shed.Config, l concurrency.Config, mode spillway.Mode) (s Shedder, err error) {
	if s.Limit, err = concurrency.New(l); err != nil {
		return s, invalid.In(stack, "Concurrency", err)
	}
	c.Limit = s.Limit
	if s.Shedder, err = shed.New(c); err != nil {
		return s, invalid.In(stack, "Shed", err)
	}
	if mode == spillway.ModeObserve {
		s.observer, err = shed.New(c)
	}
	return s, err
}

// deciding returns the Shedder that decides in the current mode.
func (s Shedder) deciding() *shed.Shedder {
	if s.observer != nil {
		return s.observer
	}
	return s.Shedder
}

// adopt returns old, which lives on, in the mode of s. What a Shedder has learned while it observed
// ends with that mode, as it held no request back.
func (s Shedder) adopt(old Shedder) Shedder {
	if s.observer == nil || old.observer == nil {
		old.observer = s.observer
	}
	return old
}

func (s Shedder) update(c shed.Config, l concurrency.Config) error {
	c.Limit = s.Limit
	err := errors.Join(s.Shedder.Update(c), s.Limit.Update(l))
	if s.observer != nil {
		err = errors.Join(err, s.observer.Update(c))
	}
	return err
}
