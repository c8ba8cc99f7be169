package config

import (
	"errors"
	"strings"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/balance"
	"github.com/seed90641741/spillway/cmd/spillway/internal/strict"
)

// Balance says how the endpoint of a request is chosen.
type Balance struct {
	PanicThreshold    float64      `yaml:"panic_threshold" allowed:"at most 100" jsonschema_description:"Percentage of healthy endpoints that must be left when endpoints that asked to be left alone or are ejected are skipped; with fewer, none is skipped. 0 is 50, negative means that they are used only if no other is left."`
	ActiveRequestBias float64      `yaml:"active_request_bias" jsonschema_description:"Where weights differ: exponent by which an endpoint loses requests that has more in flight than usual for it. 0 is 1, negative means that requests in flight do not count."`
	SlowStart         *SlowStart   `yaml:"slow_start" jsonschema_description:"Endpoints that are added, become healthy or come back from an ejection get their share step by step. Without it, at once."`
	LoadReports       *LoadReports `yaml:"load_reports" jsonschema_description:"Weighs endpoints by their ORCA load reports: the headers or trailers endpoint-load-metrics and endpoint-load-metrics-bin. Without it reports are only removed from answers."`
	Subset            *Subset      `yaml:"subset" jsonschema_description:"Uses some of the endpoints only, for clusters with many endpoints and many proxies (deterministic subsetting, SRE chapter 20)."`
}

// SlowStart is balance.SlowStart, in Envoy's terms.
type SlowStart struct {
	Window           time.Duration `yaml:"window" jsonschema:"required" jsonschema_description:"How long an endpoint takes to get its full share."`
	Aggression       float64       `yaml:"aggression" jsonschema_description:"How fast the share grows at first; 1 is linear. 0 is 1."`
	MinWeightPercent float64       `yaml:"min_weight_percent" allowed:"0.1 to 100" jsonschema_description:"The share to begin with; 0 is 10."`
}

// LoadReports is balance.LoadReports, in the terms of gRFC A58.
type LoadReports struct {
	BlackoutPeriod          time.Duration `yaml:"blackout_period" jsonschema_description:"How long an endpoint must have reported before its reports count; 0 is 10s, negative is none."`
	WeightExpirationPeriod  time.Duration `yaml:"weight_expiration_period" jsonschema_description:"How long a report counts; 0 is 3m."`
	WeightUpdatePeriod      time.Duration `yaml:"weight_update_period" jsonschema_description:"How often weights are computed; 0 is 1s."`
	ErrorUtilizationPenalty float64       `yaml:"error_utilization_penalty" jsonschema_description:"Factor of the share of errors, which is added to the utilization; 0 is 1, negative is none."`
	OutOfBandPeriod         time.Duration `yaml:"oob_reporting_period" jsonschema_description:"Asks endpoints for reports at this interval by xds.service.orca.v3.OpenRcaService, over HTTP/2. 0 means not to ask."`
}

// Subset says which endpoints of a cluster this proxy uses.
type Subset struct {
	Size   int    `yaml:"size" allowed:"1 or more" jsonschema:"required" jsonschema_description:"Number of endpoints."`
	Client uint64 `yaml:"client" jsonschema_description:"Number of this proxy, from 0 and without gaps: proxies with different numbers use different endpoints."`
}

// OutlierDetection is balance.Outliers, in Envoy's terms.
type OutlierDetection struct {
	Consecutive5xx           int           `yaml:"consecutive_5xx" jsonschema_description:"Failures in a row that eject an endpoint: answers 500 to 599, failed connections and timeouts of the proxy. Rejections with x-envoy-overloaded do not count. 0 is 5, negative is never."`
	Interval                 time.Duration `yaml:"interval" jsonschema_description:"How often success rates are compared; 0 is 10s."`
	BaseEjectionTime         time.Duration `yaml:"base_ejection_time" jsonschema_description:"How long an ejection lasts, times the number of recent ejections; 0 is 30s."`
	MaxEjectionTime          time.Duration `yaml:"max_ejection_time" jsonschema_description:"Longest ejection; 0 is 5m."`
	MaxEjectionPercent       float64       `yaml:"max_ejection_percent" jsonschema_description:"Percentage of endpoints that may be ejected at once; one always may. 0 is 10, negative is one."`
	SuccessRateMinimumHosts  int           `yaml:"success_rate_minimum_hosts" jsonschema_description:"Number of endpoints with enough requests for success rates to be compared; 0 is 5, negative is never."`
	SuccessRateRequestVolume int           `yaml:"success_rate_request_volume" jsonschema_description:"Requests in an interval that are enough; 0 is 100."`
	SuccessRateStdevFactor   float64       `yaml:"success_rate_stdev_factor" jsonschema_description:"Standard deviations below the mean at which a success rate ejects; 0 is 1.9."`
}

// Balancing returns how endpoints of the cluster are chosen.
func (x *Cluster) Balancing() balance.Config {
	b := x.Balance
	c := balance.Config{PanicThreshold: b.PanicThreshold / 100, ActiveRequestBias: b.ActiveRequestBias, LeastBusy: x.Batch != nil}
	if s := b.SlowStart; s != nil {
		c.SlowStart = balance.SlowStart{Window: s.Window, Aggression: s.Aggression, MinWeight: s.MinWeightPercent / 100}
	}
	if r := b.LoadReports; r != nil {
		c.LoadReports = &balance.LoadReports{
			Blackout: r.BlackoutPeriod, Expiration: r.WeightExpirationPeriod, UpdatePeriod: r.WeightUpdatePeriod,
			ErrorUtilizationPenalty: r.ErrorUtilizationPenalty,
		}
	}
	if o := x.OutlierDetection; o != nil {
		c.Outliers = new(balance.Outliers(*o))
	}
	return c
}

// Subset returns the endpoints that the proxy uses.
func (x *Cluster) Subset() []string {
	if s := x.Balance.Subset; s != nil {
		return balance.Subset(x.Endpoints, s.Client, s.Size)
	}
	return x.Endpoints
}

// minOutOfBand is the shortest interval for reports out of band. gRPC servers bring it
// up to 30 s by default.
const minOutOfBand = 100 * time.Millisecond

func (k *checker) balance(at string, x *Cluster) {
	k.balancing(at, x)
	b := x.Balance
	if s := b.SlowStart; s != nil && s.Window <= 0 {
		k.failf(at+".balance.slow_start.window", "is %v, must be above 0", s.Window)
	}
	if r := b.LoadReports; r != nil && r.OutOfBandPeriod != 0 && (r.OutOfBandPeriod < minOutOfBand || r.OutOfBandPeriod > time.Hour) {
		k.failf(at+".balance.load_reports.oob_reporting_period", "is %v, must be 0, or %v to %v", r.OutOfBandPeriod, minOutOfBand, time.Hour)
	} else if r != nil && r.OutOfBandPeriod != 0 && x.Protocol == "http1" {
		k.failf(at+".balance.load_reports.oob_reporting_period", "is %v, must be 0 where protocol is http1", r.OutOfBandPeriod)
	}
}

// balanceFields are the names in the file of the fields of package balance.
var balanceFields = strings.NewReplacer(
	"Outliers.", "outlier_detection.", "Consecutive5xx", "consecutive_5xx",
	"LoadReports.Blackout", "balance.load_reports.blackout_period",
	"LoadReports.Expiration", "balance.load_reports.weight_expiration_period",
	"LoadReports.UpdatePeriod", "balance.load_reports.weight_update_period",
	"LoadReports.", "balance.load_reports.", "SlowStart.", "balance.slow_start.",
	"ActiveRequestBias", "balance.active_request_bias",
)

// balancing checks what package balance checks. What is a percentage in the file has its range there,
// so that the error has its value.
func (k *checker) balancing(at string, x *Cluster) {
	e, ok := errors.AsType[*spillway.FieldError](x.Balancing().Check())
	if ok && e.Path != "PanicThreshold" && e.Path != "SlowStart.MinWeight" {
		k.failf(at+"."+strict.Path(balanceFields.Replace(e.Path)), "%s", e.Problem())
	}
}
