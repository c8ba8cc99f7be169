package httpproxy

import (
	"cmp"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/tuner"
	"github.com/seed90641741/spillway/tune"
)

// A tuning is a limit that adapts to the capacity of a cluster. It implements [tuner.Limit].
type tuning struct {
	proxy *Proxy
	name  string // of the cluster
	limit string // config.TuneRate or config.TuneInFlight
	tuner *tuner.Tuner

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
		if t == nil || t.limit != limit || !t.tuner.Follows(c) {
			t = p.newTuning(x.Name, c, limit)
		}
		p.tunings[x.Name] = t
		p.impossible(t.Set(t.tuner.Limit())) // the configuration has put it back
	}
	for name, t := range former {
		if p.tunings[name] != t {
			t.tuner.Stop()
		}
	}
}

// newTuning starts a tuning. The lock is held: nothing reads the tuner before it is there.
func (p *Proxy) newTuning(name string, c tune.Config, limit string) *tuning {
	t := &tuning{proxy: p, name: name, limit: limit, window: tuner.Window{Signals: c.Signals}}
	var err error
	t.tuner, err = tuner.Start(p.base, &p.running, tuner.Config{Name: name + " " + limit, Tune: c, Limit: t, Lock: &p.mu, Logger: p.with.Logger})
	p.impossible(err) // it was checked
	return t
}

// Set implements [tuner.Limit].
func (t *tuning) Set(limit float64) error {
	p := t.proxy
	if t.limit == config.TuneInFlight {
		p.clusters[t.name].Current().Limiter.SetMaxInFlight(uint32(limit))
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

func (t *tuning) Read(now time.Time, values []float64) (used float64) {
	m, dropped, share := t.count(now)
	served := t.window.Read(now, m, values)
	switch {
	case t.limit == config.TuneRate:
		return served * share
	case dropped:
		return t.tuner.Limit()
	}
	return float64(m.Waiting())
}

// count returns the meter of the cluster, whether the limit in flight has dropped requests since the last
// reading, and the share of the gate that has admitted the most requests since then, as each gate has its
// own limit.
func (t *tuning) count(now time.Time) (m *tuner.Meter, dropped bool, share float64) {
	p := t.proxy
	u := p.clusters[t.name].Current()
	total := u.Limiter.Stats(now).RejectedTotal
	dropped, t.dropped = total > t.dropped, total
	most, all := uint64(0), uint64(0)
	for key, g := range p.gates {
		if key.cluster == t.name {
			n := g.admitted.Load()
			most, all, g.counted = max(most, n-g.counted), all+n-g.counted, n
		}
	}
	return &u.Meter.Counts, dropped, float64(max(most, 1)) / float64(max(all, 1))
}
