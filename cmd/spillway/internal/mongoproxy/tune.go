package mongoproxy

import (
	"context"
	"reflect"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/tuner"
	"github.com/seed90641741/spillway/tune"
)

// A tuning is a request limiter whose rate follows what the servers can do. It is a
// [tuner.Limit], and an observer that counts what the servers answer.
type tuning struct {
	listener *listener
	config   tune.Config
	tuner    *tuner.Tuner
	cancel   context.CancelFunc
	meter    tuner.Meter
	window   tuner.Window
}

// retune begins a tuning, or ends it, as the settings have it. The lock of tunings is
// held.
func (l *listener) retune(s *settings) error {
	c, ok := s.config.Tuning()
	if t := l.tuning; t != nil {
		if ok && reflect.DeepEqual(t.config, c) {
			return nil
		}
		t.cancel()
		l.tuning = nil
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
	l.tuning = t
	return nil
}

// Observe implements [spillway.Observer].
func (t *tuning) Observe(e spillway.Event) {
	if e.Policy == "ratelimit" && !e.Refused {
		how := tuner.Failed
		switch e.Outcome {
		case spillway.Served:
			how = tuner.Served
		case spillway.Overloaded:
			how = tuner.Refused
		default: // nothing was said of the load
		}
		t.meter.End(e.Latency, how)
	}
	if t.listener.observer != nil {
		t.listener.observer.Observe(e)
	}
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
	ended := t.meter.Ended() // first, so that not more have ended than were admitted
	admitted := t.listener.gate.Stats(now).RateLimit.Admitted
	return t.window.Read(now, &t.meter, t.config.Signals, values, admitted > ended)
}
