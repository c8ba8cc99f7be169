package config

import (
	"cmp"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/balance"
)

// Balance says how the endpoint of a request is chosen.
type Balance struct {
	PanicThreshold    float64      `yaml:"panic_threshold" allowed:"at most 100" jsonschema_description:"Percentage of healthy endpoints that must be left when those that asked to be left alone or are ejected are skipped; with fewer, none is skipped. 0 is 50, negative skips them while any other is left."`
	ActiveRequestBias float64      `yaml:"active_request_bias" allowed:"at most 10" jsonschema_description:"Where weights differ: exponent by which an endpoint with more in flight than usual loses requests. 0 is 1, negative ignores requests in flight."`
	SlowStart         *SlowStart   `yaml:"slow_start" jsonschema_description:"Endpoints that are added, become healthy or come back from an ejection get their share step by step."`
	LoadReports       *LoadReports `yaml:"load_reports" jsonschema_description:"Weighs endpoints by their ORCA load reports: the headers or trailers endpoint-load-metrics and endpoint-load-metrics-bin. Without it reports are only removed from answers."`
	Subset            *Subset      `yaml:"subset" jsonschema_description:"Uses some of the endpoints only, where many proxies share many endpoints (deterministic subsetting, SRE chapter 20)."`
}

type (
	// SlowStart says how an endpoint that is new or comes back gets its share.
	SlowStart = balance.SlowStart
	// LoadReports says how endpoints are weighed by their load reports.
	LoadReports = balance.LoadReports
	// OutlierDetection says which endpoints are ejected.
	OutlierDetection = balance.OutlierDetection
)

// Subset says which endpoints of a cluster this proxy uses.
type Subset struct {
	Size   int    `yaml:"size" allowed:"1 or more" jsonschema:"required" jsonschema_description:"Number of endpoints."`
	Client uint64 `yaml:"client" jsonschema_description:"Number of this proxy, from 0 and without gaps: proxies with different numbers use different endpoints."`
}

// Balancing returns how endpoints of the cluster are chosen.
func (x *Cluster) Balancing() balance.Config {
	return balance.Config{
		PanicThreshold: x.Balance.PanicThreshold, ActiveRequestBias: x.Balance.ActiveRequestBias, LeastBusy: x.Batch != nil,
		SlowStart: x.Balance.SlowStart, LoadReports: x.Balance.LoadReports, Outliers: x.OutlierDetection,
	}
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

// balance checks what the ranges of fields do not say.
func (k *checker) balance(at string, x *Cluster) {
	if r := x.Balance.LoadReports; r != nil && r.OutOfBandPeriod != 0 && (r.OutOfBandPeriod < minOutOfBand || r.OutOfBandPeriod > time.Hour) {
		k.failf(at+".balance.load_reports.oob_reporting_period", "is %v, must be 0, or %v to %v", r.OutOfBandPeriod, minOutOfBand, time.Hour)
	} else if r != nil && r.OutOfBandPeriod != 0 && x.Protocol == "http1" {
		k.failf(at+".balance.load_reports.oob_reporting_period", "is %v, must be 0 where protocol is http1", r.OutOfBandPeriod)
	}
	const longest = 24 * time.Hour
	if o := x.OutlierDetection; o != nil && o.MaxEjectionTime != 0 {
		if least := cmp.Or(o.BaseEjectionTime, 30*time.Second); o.MaxEjectionTime < least || o.MaxEjectionTime > longest {
			k.failf(at+".outlier_detection.max_ejection_time", "is %v, must be %v to %v", o.MaxEjectionTime, least, longest)
		}
	}
}
