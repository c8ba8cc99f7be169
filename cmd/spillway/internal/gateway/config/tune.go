package config

import (
	"cmp"
	"errors"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/policyconf"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/tune"
)

// Tune is how one limit of a cluster follows what the cluster can do.
type Tune struct {
	Mode       Mode          `yaml:"mode" jsonschema_description:"The default is observe, whatever the mode of the proxy is: moves are reported and not made."`
	Limit      string        `yaml:"limit" jsonschema:"enum=rate,enum=in_flight" jsonschema_description:"rate, the default: rate_limit.rate. in_flight: inflight.max_in_flight. It begins at what is configured there, and goes back to it when nothing is known."`
	Min        float64       `yaml:"min" sets:"tune.Config.Min" jsonschema_description:"The limit never goes below." default:"Zero means a tenth of the limit."`
	Max        float64       `yaml:"max" sets:"tune.Config.Max" jsonschema_description:"The limit never goes above." default:"Zero means ten times the limit."`
	Latency    time.Duration `yaml:"latency" jsonschema_description:"Mean time until an answer begins at which the limit is right, well above that of an idle cluster; 0 ignores latency."`
	Rejections float64       `yaml:"rejections" jsonschema_description:"Share of requests that the cluster rejects (503, not 429) at which the limit is right, such as 0.05; 0 ignores rejections."`

	Rule     string        `yaml:"rule" jsonschema:"enum=aimd,enum=proportional" jsonschema_description:"aimd, the default, only uses whether the pressure is too high; proportional also uses how high it is."`
	Increase float64       `yaml:"increase" sets:"tune.Config.Increase" jsonschema_description:"By which share of the highest good limit aimd raises at first."`
	Decrease float64       `yaml:"decrease" sets:"tune.Config.Decrease" jsonschema_description:"By which share aimd lowers at first."`
	Gain     float64       `yaml:"gain" sets:"tune.Config.Gain" jsonschema_description:"How much of the distance to the target a move of proportional makes at most."`
	Deadband float64       `yaml:"deadband" sets:"tune.Config.Deadband" jsonschema_description:"How far the pressure may be from 1 without a move."`
	MaxStep  float64       `yaml:"max_step" sets:"tune.Config.MaxStep" jsonschema_description:"The greatest share of the limit that one move changes."`
	MaxDelta float64       `yaml:"max_delta" sets:"tune.Config.MaxDelta" jsonschema_description:"The most that one move changes."`
	Reaction time.Duration `yaml:"reaction" sets:"tune.Config.Reaction" jsonschema_description:"The least time between two moves; the signals are read twice in that time."`
	Persist  time.Duration `yaml:"persist" sets:"tune.Config.Persist" jsonschema_description:"How long a condition must hold before a move."`
	Stale    time.Duration `yaml:"stale" sets:"tune.Config.Stale" jsonschema_description:"For how long signals may be unknown before the limit goes back to the configured one."`
}

// The limits that can be tuned.
const (
	TuneRate     = "rate"
	TuneInFlight = "in_flight"
)

// The signals of a cluster, by the names that reasons and statistics have.
const (
	SignalLatency    = "latency"
	SignalRejections = "rejections"
)

// Tuning returns how a limit of the cluster is tuned, and whether one is.
func (x *Cluster) Tuning() (c tune.Config, ok bool) {
	if x.Tune == nil || x.Tune.Limit != TuneInFlight {
		return x.Tune.config(x.RateLimit.Rate)
	}
	c, ok = x.Tune.config(float64(cmp.Or(x.Inflight.MaxInFlight, inflight.DefaultMaxInFlight)))
	c.Whole = true
	return c, ok
}

// Tuning returns how the rate of the request limiter is tuned, and whether it is.
func (m *Mongo) Tuning() (c tune.Config, ok bool) { return m.Tune.config(m.Parameters.RequestRate) }

func (t *Tune) config(limit float64) (c tune.Config, ok bool) {
	if t == nil || t.Mode == "off" {
		return c, false
	}
	c = policyconf.Fill[tune.Config](*t)
	c.Limit, c.Enforce = limit, t.Mode.Or(spillway.ModeObserve) == spillway.ModeEnforce
	if t.Rule == tune.Proportional.String() {
		c.Rule = tune.Proportional
	}
	if t.Latency != 0 {
		c.Signals = append(c.Signals, tune.Signal{Name: SignalLatency, Unit: "ms", Target: t.Latency.Seconds() * 1000})
	}
	if t.Rejections != 0 {
		c.Signals = append(c.Signals, tune.Signal{Name: SignalRejections, Unit: "%", Target: t.Rejections * 100})
	}
	return c, true
}

func (k *checker) tune(at string, x *Cluster) {
	t := x.Tune
	if !k.tunes(at, t) {
		return
	}
	of, mode := "rate_limit", x.RateLimit.Mode
	if t.Limit == TuneInFlight {
		of, mode = "inflight", x.Inflight.Mode
	}
	k.tuneMode(at, t, of+".mode", mode)
	switch {
	case t.Limit != TuneInFlight && x.RateLimit.Rate <= 0:
		k.failf(at+".limit", "is rate, but rate_limit.rate is not given")
	case t.Limit == TuneInFlight && x.Inflight.MaxInFlight < 0:
		k.failf(at+".limit", "is in_flight, but inflight.max_in_flight is no limit")
	default:
		k.tuning(at, t, x.Tuning, policyconf.Fill[ratelimit.Config](x.RateLimit))
	}
}

func (k *checker) mongoTune(at string, m *Mongo) {
	t, p := m.Tune, &m.Parameters
	if !k.tunes(at, t) {
		return
	}
	k.tuneMode(at, t, "request_mode", m.RequestMode)
	switch {
	case t.Limit == TuneInFlight:
		k.failf(at+".limit", "is in_flight, must be rate here")
	case !p.RequestEnabled || p.RequestRate <= 0:
		k.failf(at, "is given, but parameters enable no limit of requests: "+
			"ingressRequestRateLimiterEnabled and ingressRequestAdmissionRatePerSec are needed")
	default:
		k.tuning(at, t, m.Tuning, mongoRate(p.RequestRate, p.RequestBurst, p.RequestDepth, nil))
	}
}

// tunes checks what is the same for all limits, and reports whether it is given and good.
func (k *checker) tunes(at string, t *Tune) bool {
	switch {
	case t == nil:
	case t.Latency == 0 && t.Rejections == 0:
		k.failf(at, "has nothing to go by, must have latency or rejections")
	case t.Latency < 0:
		k.failf(at+".latency", "is %v, must not be negative", t.Latency)
	case !(t.Rejections >= 0 && t.Rejections < 1):
		k.failf(at+".rejections", "is %v, must be 0 to less than 1", t.Rejections)
	default:
		return true
	}
	return false
}

// tuneMode reports a limit that is tuned but not enforced.
func (k *checker) tuneMode(at string, t *Tune, field string, m Mode) {
	if mode := k.config.modeOf(m); t.Mode == "enforce" && mode != spillway.ModeEnforce {
		k.failf(at+".mode", "is enforce, but %s is %v: the limit would be moved and not be kept", field, mode)
	}
}

// tuning checks the settings with the policies. An invalid limiter has its own error.
func (k *checker) tuning(at string, given *Tune, tuning func() (tune.Config, bool), r ratelimit.Config) {
	c, on := tuning()
	if _, err := ratelimit.New(r); err != nil || !on {
		return
	}
	t, err := tune.New(c)
	policy[tune.Config](k, at, *given, err)
	if err != nil || c.Whole {
		return
	}
	s := t.Stats(time.Now())
	k.bound(at+".min", "is", given.Min, r)
	k.bound(at+".max", "is", given.Max, r)
	k.bound(at, "needs min: by default it is", s.Min, r)
	k.bound(at, "needs max: by default it is", s.Max, r)
}

// bound reports a rate that the limiter does not allow. Zero means that no rate is set.
func (k *checker) bound(field, is string, rate float64, r ratelimit.Config) {
	r.Rate = rate
	_, err := ratelimit.New(r)
	if e, ok := errors.AsType[*spillway.FieldError](err); ok && rate != 0 {
		k.failf(field, "%s %v, with which %v", is, rate, e)
	}
}
