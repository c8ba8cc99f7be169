package importer

import (
	"cmp"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/importer/document"
)

// outliers imports outlier detection. Numbers of Envoy that mean never are negative here.
func (e *envoyImport) outliers(x *config.Cluster, c document.Part) {
	if !c.Given() {
		return
	}
	x.OutlierDetection = new(config.OutlierDetection)
	if c.Empty() {
		c.Carry("clusters[].outlier_detection")
	}
	for _, f := range []struct {
		field string
		set   func(*config.OutlierDetection, time.Duration)
	}{
		{"interval", func(o *config.OutlierDetection, d time.Duration) { o.Interval = d }},
		{"base_ejection_time", func(o *config.OutlierDetection, d time.Duration) { o.BaseEjectionTime = d }},
		{"max_ejection_time", func(o *config.OutlierDetection, d time.Duration) { o.MaxEjectionTime = d }},
	} {
		e.setDuration(x, c.Get(f.field), "outlier_detection."+f.field, "", func(x *config.Cluster, d time.Duration) {
			e.outlier(x, func(o *config.OutlierDetection) { f.set(o, d) })
		})
	}
	for _, f := range []struct {
		field, reason string
		zero          int // what 0 is here
		set           func(*config.OutlierDetection, int)
	}{
		{"consecutive_5xx", "", -1, func(o *config.OutlierDetection, n int) { o.Consecutive5xx = n }},
		{"max_ejection_percent", "one endpoint may always be ejected", -1, func(o *config.OutlierDetection, n int) { o.MaxEjectionPercent = float64(n) }},
		{"success_rate_minimum_hosts", "", 1, func(o *config.OutlierDetection, n int) { o.SuccessRateMinimumHosts = n }},
		{"success_rate_request_volume", "", 1, func(o *config.OutlierDetection, n int) { o.SuccessRateRequestVolume = n }},
		{"success_rate_stdev_factor", "", 0, func(o *config.OutlierDetection, n int) { o.SuccessRateStdevFactor = float64(n) / 1000 }},
	} {
		e.setCount(x, c.Get(f.field), "outlier_detection."+f.field, f.reason, func(x *config.Cluster, n int) {
			n = cmp.Or(n, f.zero)
			e.outlier(x, func(o *config.OutlierDetection) { f.set(o, n) })
		})
	}
	e.enforcing(x, c)
}

// outlier changes a copy, as the former value may still be in use.
func (*envoyImport) outlier(x *config.Cluster, set func(*config.OutlierDetection)) {
	next := *x.OutlierDetection
	set(&next)
	x.OutlierDetection = &next
}

// enforcing imports the shares of ejections that are enforced: all or none of them.
func (e *envoyImport) enforcing(x *config.Cluster, c document.Part) {
	for _, f := range []struct {
		field string
		never func(*config.OutlierDetection)
	}{
		{"enforcing_consecutive_5xx", func(o *config.OutlierDetection) { o.Consecutive5xx = -1 }},
		{"enforcing_success_rate", func(o *config.OutlierDetection) { o.SuccessRateMinimumHosts = -1 }},
		{"enforcing_consecutive_gateway_failure", nil},
		{"enforcing_failure_percentage", nil},
		{"enforcing_consecutive_local_origin_failure", nil},
	} {
		switch at := c.Get(f.field); {
		case f.never == nil && at.Text() == "0":
			at.Carry("the default")
		case at.Text() == "0":
			e.setCluster(x, at, "outlier_detection", "", func(x *config.Cluster) { e.outlier(x, f.never) })
		case at.Text() == "100" && f.never != nil:
			at.Carry("clusters[].outlier_detection")
		default:
			at.Leave("a rule of outlier detection is enforced in all cases or in none", "")
		}
	}
	c.Leave("endpoints are ejected by failures in a row and by success rates only", "clusters[].outlier_detection")
}
