package mongoproxy

import (
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/tuner"
)

// A tuning is a request limiter whose rate adapts to the capacity of the servers. It
// implements [tuner.Limit].
type tuning struct {
	listener *listener
	tuner    *tuner.Tuner
	meter    tuner.Meter
	window   tuner.Window

	admitted, exempted uint64 // at the latest reading
}

// retune starts or stops a tuning according to the settings. The lock of tunings is held.
func (l *listener) retune(s *settings) error {
	c, ok := s.config.Tuning()
	if t := l.tuning.Load(); t != nil {
		if ok && t.tuner.Follows(c) {
			return nil
		}
		t.tuner.Stop()
		l.tuning.Store(nil)
	}
	if !ok {
		return nil
	}
	t := &tuning{listener: l, window: tuner.Window{Signals: c.Signals}}
	var err error
	t.tuner, err = tuner.Start(l.base, &l.running, tuner.Config{
		Name: s.config.Name + " ingressRequestAdmissionRatePerSec", Tune: c, Limit: t, Lock: &l.tune, Logger: l.proxy.with.Logger,
	})
	if err == nil {
		l.tuning.Store(t)
	}
	return err
}

// begin counts a command that is sent; a nil tuning counts none.
func (t *tuning) begin() {
	if t != nil {
		t.meter.Begin()
	}
}

func (t *tuning) end(took time.Duration, a answered, err error) {
	if t == nil {
		return
	}
	how := tuner.Failed // nothing was said of the load
	switch {
	case err != nil:
	case a.Overloaded:
		how = tuner.Rejected
	case !a.Failed:
		how = tuner.Served
	}
	t.meter.End(took, how)
}

// Set implements [tuner.Limit].
func (t *tuning) Set(float64) error {
	l := t.listener
	return l.gate.Update(l.ingress(l.settings.Load())) // with the limit that the tuner has
}

func (t *tuning) Read(now time.Time, values []float64) (used float64) {
	served := t.window.Read(now, &t.meter, values)
	s := t.listener.gate.Stats(now).RateLimit
	admitted, exempted := float64(s.AdmittedTotal-t.admitted), float64(s.ExemptedTotal-t.exempted)
	t.admitted, t.exempted = s.AdmittedTotal, s.ExemptedTotal
	if exempted == 0 {
		return served
	}
	return served * admitted / (admitted + exempted) // exempt commands use nothing of the limit
}
