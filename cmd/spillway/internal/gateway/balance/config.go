package balance

import (
	"math/rand/v2"
	"time"

	"github.com/seed90641741/spillway/internal/invalid"
)

// Config configures a [Set]. The zero Config is ready for use.
type Config struct {
	// PanicThreshold is the share of healthy endpoints that must be left when those
	// with hints and those ejected are skipped; with fewer, none is skipped. Zero means
	// 0.5; it must be at most 1. Negative means that hints and ejections are only
	// ignored if no endpoint is left.
	PanicThreshold float64
	// ActiveRequestBias is the exponent of the attempts in flight, relative to what is
	// usual, where weights differ. The higher it is, the faster an endpoint that gets slow
	// loses requests.
	// Zero means 1, negative means that they do not count; it must be at most 10.
	ActiveRequestBias float64
	// LeastBusy picks the least busy one of all endpoints, not of two.
	LeastBusy bool
	// SlowStart configures how endpoints start.
	SlowStart SlowStart
	// Outliers, if not nil, ejects endpoints that fail more than others.
	Outliers *Outliers
	// LoadReports, if not nil, weighs endpoints by their load reports.
	LoadReports *LoadReports
	// Rand returns a number in [0, 1) and is safe for concurrent use. Nil means
	// [rand.Float64].
	Rand func() float64
}

// SlowStart configures how an endpoint that is new or comes back gets its share.
type SlowStart struct {
	// Window is how long it takes. Zero means no slow start; it must be
	// at most 1 h.
	Window time.Duration
	// Aggression is how fast the share grows at first; 1 is linear. Zero means 1; it
	// must be 0.1 to 10.
	Aggression float64
	// MinWeight is the share to begin with. Zero means 0.1; it must be at most 1.
	MinWeight float64
}

// Outliers configures outlier detection. The zero Outliers has Envoy's defaults.
type Outliers struct {
	// Consecutive5xx is how many failures in a row eject an endpoint: answers 500 to
	// 599, connections that fail and timeouts of the proxy. Zero means 5, negative
	// means that they do not eject.
	Consecutive5xx int
	// Interval is how often success rates are compared. Zero means 10 s; it must be
	// 10 ms to 1 h.
	Interval time.Duration
	// BaseEjectionTime, times the number of recent ejections, is how long
	// an ejection lasts. Zero means 30 s; it must be 10 ms to 1 h.
	BaseEjectionTime time.Duration
	// MaxEjectionTime is the longest ejection. Zero means 5 min, or BaseEjectionTime
	// if that is more; it must be at least BaseEjectionTime and at most 24 h.
	MaxEjectionTime time.Duration
	// MaxEjectionPercent is how many percent of the endpoints may be ejected at once;
	// one always may. Zero means 10; it must be at most 100, negative means one.
	MaxEjectionPercent float64
	// SuccessRateMinimumHosts is how many endpoints must have enough requests for their
	// success rates to be compared. Zero means 5, negative means that they are not.
	SuccessRateMinimumHosts int
	// SuccessRateRequestVolume is how many requests in an interval are enough. Zero
	// means 100.
	SuccessRateRequestVolume int
	// SuccessRateStdevFactor is how many standard deviations below the mean a success
	// rate must be. Zero means 1.9; it must be positive.
	SuccessRateStdevFactor float64
}

// LoadReports configures weights by ORCA load reports. The zero LoadReports has the
// defaults of gRFC A58.
type LoadReports struct {
	// Blackout is how long an endpoint must have reported before its reports count.
	// Zero means 10 s, negative means none.
	Blackout time.Duration
	// Expiration is how long a report counts. Zero means 3 min; it must be at least
	// 1 s.
	Expiration time.Duration
	// UpdatePeriod is how often weights are computed. Zero means 1 s; it must be 100 ms
	// to 1 min.
	UpdatePeriod time.Duration
	// ErrorUtilizationPenalty multiplies the share of errors. Zero means 1, negative
	// means that errors do not count; it must be at most 1000.
	ErrorUtilizationPenalty float64
}

// number checks and fills in one number.
func number(err *error, field string, value *float64, preset, least, most float64) {
	if *value == 0 {
		*value = preset
	}
	if *err == nil && !(*value >= least && *value <= most) {
		*err = invalid.Field("balance", field, *value, "%v to %v", least, most)
	}
}

// length checks and fills in one duration.
func length(err *error, field string, value *time.Duration, preset, least, most time.Duration) {
	if *value == 0 {
		*value = preset
	}
	if *err == nil && (*value < least || *value > most) {
		*err = invalid.Field("balance", field, *value, "%v to %v", least, most)
	}
}

// withDefaults returns c with its zero fields filled in, or an error that names the
// first field that is wrong.
func (c Config) withDefaults() (_ Config, err error) {
	negative(&c.PanicThreshold, &c.ActiveRequestBias)
	number(&err, "PanicThreshold", &c.PanicThreshold, 0.5, off, 1)
	number(&err, "ActiveRequestBias", &c.ActiveRequestBias, 1, off, 10)
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	w := &c.SlowStart
	length(&err, "SlowStart.Window", &w.Window, 0, 0, time.Hour)
	number(&err, "SlowStart.Aggression", &w.Aggression, 1, 0.1, 10)
	number(&err, "SlowStart.MinWeight", &w.MinWeight, 0.1, 1e-3, 1)
	if c.Outliers != nil {
		c.Outliers = new(*c.Outliers)
		c.Outliers.fill(&err)
	}
	if c.LoadReports != nil {
		c.LoadReports = new(*c.LoadReports)
		c.LoadReports.fill(&err)
	}
	return c, err
}

// off replaces a negative number: as small as zero, and not the default.
const off = 1e-9

// negative replaces negative numbers.
func negative(values ...*float64) {
	for _, v := range values {
		if *v < 0 {
			*v = off
		}
	}
}

func (o *Outliers) fill(err *error) {
	if o.Consecutive5xx == 0 {
		o.Consecutive5xx = 5
	}
	length(err, "Outliers.Interval", &o.Interval, 10*time.Second, 10*time.Millisecond, time.Hour)
	length(err, "Outliers.BaseEjectionTime", &o.BaseEjectionTime, 30*time.Second, 10*time.Millisecond, time.Hour)
	length(err, "Outliers.MaxEjectionTime", &o.MaxEjectionTime, max(5*time.Minute, o.BaseEjectionTime), o.BaseEjectionTime, 24*time.Hour)
	negative(&o.MaxEjectionPercent)
	number(err, "Outliers.MaxEjectionPercent", &o.MaxEjectionPercent, 10, off, 100)
	if o.SuccessRateMinimumHosts == 0 {
		o.SuccessRateMinimumHosts = 5
	}
	if o.SuccessRateRequestVolume == 0 {
		o.SuccessRateRequestVolume = 100
	}
	if *err == nil && o.SuccessRateRequestVolume < 1 {
		*err = invalid.Field("balance", "Outliers.SuccessRateRequestVolume", o.SuccessRateRequestVolume, "1 or more")
	}
	number(err, "Outliers.SuccessRateStdevFactor", &o.SuccessRateStdevFactor, 1.9, 0.01, 100)
}

func (r *LoadReports) fill(err *error) {
	if r.Blackout == 0 {
		r.Blackout = 10 * time.Second
	}
	r.Blackout = max(r.Blackout, 0)
	length(err, "LoadReports.Expiration", &r.Expiration, 3*time.Minute, time.Second, 24*time.Hour)
	length(err, "LoadReports.UpdatePeriod", &r.UpdatePeriod, time.Second, 100*time.Millisecond, time.Minute)
	negative(&r.ErrorUtilizationPenalty)
	number(err, "LoadReports.ErrorUtilizationPenalty", &r.ErrorUtilizationPenalty, 1, off, 1000)
}
