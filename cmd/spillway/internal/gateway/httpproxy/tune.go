package httpproxy

import (
	"cmp"
	"context"
	"reflect"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/tuner"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/upstream"
	"github.com/seed90641741/spillway/tune"
)

// A tuning is a limit that adapts to the capacity of a cluster. It implements [tuner.Limit].
type tuning struct {
	proxy  *Proxy
	name   string // of the cluster
	config tune.Config
	limit  string // config.TuneRate or config.TuneInFlight
	tuner  *tuner.Tuner
	cancel context.CancelFunc

	window  tuner.Window
	dropped uint64 // by the limit in flight, until the last reading
}

// tune starts and stops tunings according to the current configuration. The lock is held.
func (p *Proxy) tune() {
	former := p.tunings
	p.tunings = make(map[string]*tuning)
	for i := range p.config.Clusters {
		x := &p.config.Clusters[i]
		c, ok := x.Tuning()
		if !ok {
			continue
		}
		t, limit := former[x.Name], cmp.Or(x.Tune.Limit, config.TuneRate)
		if t == nil || t.limit != limit || !reflect.DeepEqual(t.config, c) {
			t = p.newTuning(x.Name, c, limit)
		}
		p.tunings[x.Name] = t
		p.impossible(t.put(t.tuner.Limit())) // the configuration has put it back
	}
	for name, t := range former {
		if p.tunings[name] != t {
			t.cancel()
		}
	}
}

func (p *Proxy) newTuning(name string, c tune.Config, limit string) *tuning {
	t := &tuning{proxy: p, name: name, config: c, limit: limit}
	var err error
	t.tuner, err = tuner.New(tuner.Config{Name: name + " " + limit, Tune: c, Limit: t, Logger: p.logger})
	p.impossible(err) // it was checked
	var ctx context.Context
	ctx, t.cancel = context.WithCancel(p.base)
	p.running.Go(func() { t.tuner.Run(ctx) })
	return t
}

// Set implements [tuner.Limit].
func (t *tuning) Set(ctx context.Context, limit float64) error {
	t.proxy.mu.Lock()
	defer t.proxy.mu.Unlock()
	if ctx.Err() != nil {
		return nil // another one has taken its place
	}
	return t.put(limit)
}

// put puts a limit in force. The lock is held.
func (t *tuning) put(limit float64) error {
	p := t.proxy
	if t.limit == config.TuneInFlight {
		p.clusters[t.name].Current().Limiter().SetMaxRequests(uint32(limit))
		return nil
	}
	for key, c := range p.policies {
		if key.cluster != t.name {
			continue
		}
		c.RateLimit.Rate = limit
		if err := p.gates[key].ingress.Update(c); err != nil {
			return err
		}
	}
	return nil
}

// Read implements [tuner.Limit].
func (t *tuning) Read(_ context.Context, now time.Time, values []float64) (used float64) {
	m, dropped, share := t.count(now)
	waiting := m.Waiting()
	served := t.window.Read(now, &m.Counts, t.config.Signals, values, waiting > 0)
	switch {
	case t.limit == config.TuneRate:
		return served * share
	case dropped:
		return t.tuner.Limit()
	}
	return float64(waiting)
}

// count returns the meter of the cluster, whether the limit in flight has dropped requests since the last
// reading, and the share of the gate that has admitted the most requests since then, as each gate has its
// own limit.
func (t *tuning) count(now time.Time) (m *upstream.Meter, dropped bool, share float64) {
	p := t.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.clusters[t.name].Current()
	total := u.Limiter().Stats(now).RejectedTotal
	dropped, t.dropped = total > t.dropped, total
	most, all := uint64(0), uint64(0)
	for key, g := range p.gates {
		if key.cluster == t.name {
			n := g.admitted.Load()
			most, all, g.counted = max(most, n-g.counted), all+n-g.counted, n
		}
	}
	return u.Meter(), dropped, float64(max(most, 1)) / float64(max(all, 1))
}
