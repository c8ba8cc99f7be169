package importer

import (
	"cmp"

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
	for _, field := range []string{"interval", "base_ejection_time", "max_ejection_time"} {
		put(e.builder, x, c.Get(field), "outlier_detection."+field, "")
	}
	for _, f := range []struct {
		field, reason string
		zero          int     // what 0 is here
		units         float64 // of the number in one unit here
	}{
		{"consecutive_5xx", "", -1, 1},
		{"max_ejection_percent", "one endpoint may always be ejected", -1, 1},
		{"success_rate_minimum_hosts", "", 1, 1},
		{"success_rate_request_volume", "", 1, 1},
		{"success_rate_stdev_factor", "", 0, 1000},
	} {
		at := c.Get(f.field)
		n, ok := at.Count()
		switch {
		case ok && n == 0 && f.zero == 0:
			at.Leave("0 is the default here", "")
		case ok:
			assign(e.builder, x, at, "outlier_detection."+f.field, f.reason, float64(cmp.Or(n, f.zero))/f.units)
		case at.There():
			at.Leave("it is no number from 0 to 2147483647", "")
		}
	}
	e.enforcing(x, c)
}

// enforcing imports the shares of ejections that are enforced: all or none of them.
func (e *envoyImport) enforcing(x *config.Cluster, c document.Part) {
	for _, f := range []struct{ field, never string }{ // and the field that is negative for never
		{"enforcing_consecutive_5xx", "consecutive_5xx"},
		{"enforcing_success_rate", "success_rate_minimum_hosts"},
		{"enforcing_consecutive_gateway_failure", ""},
		{"enforcing_failure_percentage", ""},
		{"enforcing_consecutive_local_origin_failure", ""},
	} {
		switch at := c.Get(f.field); {
		case f.never == "" && at.Text() == "0":
			at.Carry("the default")
		case at.Text() == "0":
			assign(e.builder, x, at, "outlier_detection."+f.never, "", -1)
		case at.Text() == "100" && f.never != "":
			at.Carry("clusters[].outlier_detection")
		default:
			at.Leave("a rule of outlier detection is enforced in all cases or in none", "")
		}
	}
	c.Leave("endpoints are ejected by failures in a row and by success rates only", "clusters[].outlier_detection")
}
