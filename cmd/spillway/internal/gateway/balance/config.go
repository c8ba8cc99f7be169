package balance

import (
	"cmp"
	"math/rand/v2"
	"time"
)

// Config configures a [Set]. The zero Config is ready for use. Package config has the ranges of the
// fields, by their tags, and checks them: a Set takes what was found good.
type Config struct {
	// PanicThreshold is the percentage of healthy endpoints that must be left when those
	// with hints and those ejected are skipped; with fewer, none is skipped. Zero means
	// 50. Negative means that hints and ejections are only ignored if no endpoint is left.
	PanicThreshold float64
	// ActiveRequestBias is the exponent of the attempts in flight, relative to what is
	// usual, where weights differ. The higher it is, the faster an endpoint that gets slow
	// loses requests. Zero means 1, negative means that they do not count.
	ActiveRequestBias float64
	// LeastBusy picks the least busy one of all endpoints, not of two.
	LeastBusy bool
	// SlowStart, if not nil, configures how endpoints start.
	SlowStart *SlowStart
	// Outliers, if not nil, ejects endpoints that fail more than others.
	Outliers *OutlierDetection
	// LoadReports, if not nil, weighs endpoints by their load reports.
	LoadReports *LoadReports
	// Rand returns a number in [0, 1) and is safe for concurrent use. Nil means
	// [rand.Float64].
	Rand func() float64
}

// SlowStart configures how an endpoint that is new or comes back gets its share, in Envoy's terms.
type SlowStart struct {
	Window           time.Duration `yaml:"window" allowed:"above 0 and at most 1h" jsonschema:"required" jsonschema_description:"How long an endpoint takes to get its full share."`
	Aggression       float64       `yaml:"aggression" allowed:"0.1 to 10" jsonschema_description:"How fast the share grows at first; 1 is linear. 0 is 1."`
	MinWeightPercent float64       `yaml:"min_weight_percent" allowed:"0.1 to 100" jsonschema_description:"The share to begin with; 0 is 10."`
}

// LoadReports configures weights by ORCA load reports, in the terms of gRFC A58.
type LoadReports struct {
	BlackoutPeriod          time.Duration `yaml:"blackout_period" jsonschema_description:"How long an endpoint must have reported before its reports count; 0 is 10s, negative is none."`
	WeightExpirationPeriod  time.Duration `yaml:"weight_expiration_period" allowed:"1s to 24h" jsonschema_description:"How long a report counts; 0 is 3m."`
	WeightUpdatePeriod      time.Duration `yaml:"weight_update_period" allowed:"100ms to 1m" jsonschema_description:"How often weights are computed; 0 is 1s."`
	ErrorUtilizationPenalty float64       `yaml:"error_utilization_penalty" allowed:"at most 1000" jsonschema_description:"Factor of the share of errors, which is added to the utilization; 0 is 1, negative is none."`
	// OutOfBandPeriod is for the caller, which passes reports to [Set.Report].
	OutOfBandPeriod time.Duration `yaml:"oob_reporting_period" jsonschema_description:"Asks endpoints for reports at this interval by xds.service.orca.v3.OpenRcaService, over HTTP/2. 0 means not to ask."`
}

// OutlierDetection configures which endpoints are ejected, in Envoy's terms. The zero OutlierDetection
// has Envoy's defaults.
type OutlierDetection struct {
	Consecutive5xx           int           `yaml:"consecutive_5xx" jsonschema_description:"Failures in a row that eject an endpoint: answers 500 to 599 without x-envoy-overloaded, failed connections, timeouts of the proxy. 0 is 5, negative is never."`
	Interval                 time.Duration `yaml:"interval" allowed:"10ms to 1h" jsonschema_description:"How often success rates are compared; 0 is 10s."`
	BaseEjectionTime         time.Duration `yaml:"base_ejection_time" allowed:"10ms to 1h" jsonschema_description:"How long an ejection lasts, times the number of recent ejections; 0 is 30s."`
	MaxEjectionTime          time.Duration `yaml:"max_ejection_time" jsonschema_description:"Longest ejection; 0 is 5m."`
	MaxEjectionPercent       float64       `yaml:"max_ejection_percent" allowed:"at most 100" jsonschema_description:"Percentage of endpoints that may be ejected at once; one always may. 0 is 10, negative is one."`
	SuccessRateMinimumHosts  int           `yaml:"success_rate_minimum_hosts" jsonschema_description:"Number of endpoints with enough requests for success rates to be compared; 0 is 5, negative is never."`
	SuccessRateRequestVolume int           `yaml:"success_rate_request_volume" allowed:"1 or more" jsonschema_description:"Requests in an interval that are enough; 0 is 100."`
	SuccessRateStdevFactor   float64       `yaml:"success_rate_stdev_factor" allowed:"0.01 to 100" jsonschema_description:"Standard deviations below the mean at which a success rate ejects; 0 is 1.9."`
}

// least replaces a negative threshold: it is as good as zero, and above it.
const least = 1e-9

func (c Config) withDefaults() Config {
	c.PanicThreshold = max(cmp.Or(c.PanicThreshold, 50), least)
	c.ActiveRequestBias = max(cmp.Or(c.ActiveRequestBias, 1), 0)
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	if c.SlowStart != nil {
		w := *c.SlowStart
		w.Aggression = cmp.Or(w.Aggression, 1)
		w.MinWeightPercent = cmp.Or(w.MinWeightPercent, 10)
		c.SlowStart = &w
	}
	if c.Outliers != nil {
		o := *c.Outliers
		o.Consecutive5xx = cmp.Or(o.Consecutive5xx, 5)
		o.Interval = cmp.Or(o.Interval, 10*time.Second)
		o.BaseEjectionTime = cmp.Or(o.BaseEjectionTime, 30*time.Second)
		o.MaxEjectionTime = cmp.Or(o.MaxEjectionTime, max(5*time.Minute, o.BaseEjectionTime))
		o.MaxEjectionPercent = cmp.Or(o.MaxEjectionPercent, 10)
		o.SuccessRateMinimumHosts = cmp.Or(o.SuccessRateMinimumHosts, 5)
		o.SuccessRateRequestVolume = cmp.Or(o.SuccessRateRequestVolume, 100)
		o.SuccessRateStdevFactor = cmp.Or(o.SuccessRateStdevFactor, 1.9)
		c.Outliers = &o
	}
	if c.LoadReports != nil {
		r := *c.LoadReports
		r.BlackoutPeriod = max(cmp.Or(r.BlackoutPeriod, 10*time.Second), 0)
		r.WeightExpirationPeriod = cmp.Or(r.WeightExpirationPeriod, 3*time.Minute)
		r.WeightUpdatePeriod = cmp.Or(r.WeightUpdatePeriod, time.Second)
		r.ErrorUtilizationPenalty = max(cmp.Or(r.ErrorUtilizationPenalty, 1), 0)
		c.LoadReports = &r
	}
	return c
}
