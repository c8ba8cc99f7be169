package mongoproxy

import (
	"context"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/tuner"
	"github.com/seed90641741/spillway/tune"
)

// A tuning is a request limiter whose rate adapts to the capacity of the servers. It
// implements [tuner.Limit].
type tuning struct {
	listener *listener
	config   tune.Config
	tuner    *tuner.Tuner
	cancel   context.CancelFunc
	meter    tuner.Meter
	underWay atomic.Int64 // commands that the meter will count
	window   tuner.Window

	admitted, exempted uint64 // at the latest reading
}

// retune starts or stops a tuning according to the settings. The lock of tunings is held.
func (l *listener) retune(s *settings) error {
	c, ok := s.config.Tuning()
	if t := l.tuning.Load(); t != nil {
		if ok && reflect.DeepEqual(t.config, c) {
			return nil
		}
		t.cancel()
		l.tuning.Store(nil)
	}
	if !ok {
		return nil
	}
	t := &tuning{listener: l, config: c}
	var err error
	t.tuner, err = tuner.New(tuner.Config{Name: s.config.Name + " ingressRequestAdmissionRatePerSec", Tune: c, Limit: t, Logger: l.logger})
	if err != nil {
		return err
	}
	var ctx context.Context
	ctx, t.cancel = context.WithCancel(l.base)
	l.running.Go(func() { t.tuner.Run(ctx) })
	l.tuning.Store(t)
	return nil
}

// begin counts a command that is sent; a nil tuning counts none.
func (t *tuning) begin() {
	if t != nil {
		t.underWay.Add(1)
	}
}

// end measures the end of a command.
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
	t.underWay.Add(-1)
}

// Set implements [tuner.Limit].
func (t *tuning) Set(ctx context.Context, _ float64) error {
	l := t.listener
	l.tune.Lock()
	defer l.tune.Unlock()
	if ctx.Err() != nil {
		return nil // another one has taken its place
	}
	return l.gate.Update(l.ingress(l.settings.Load())) // with the limit that the tuner has
}

// Read implements [tuner.Limit].
func (t *tuning) Read(_ context.Context, now time.Time, values []float64) (used float64) {
	served := t.window.Read(now, &t.meter, t.config.Signals, values, t.underWay.Load() > 0)
	s := t.listener.gate.Stats(now).RateLimit
	admitted, exempted := float64(s.AdmittedTotal-t.admitted), float64(s.ExemptedTotal-t.exempted)
	t.admitted, t.exempted = s.AdmittedTotal, s.ExemptedTotal
	if exempted == 0 {
		return served
	}
	return served * admitted / (admitted + exempted) // exempt commands use nothing of the limit
}
