package config

import (
	"strings"
	"testing"
	"time"
)

func TestBalanceFields(t *testing.T) {
	base := func() Cluster {
		return Cluster{Name: "web", Endpoints: []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"}}
	}
	for _, row := range []struct {
		change func(x *Cluster)
		want   string // the error; empty: none
	}{
		{func(*Cluster) {}, ""},
		{func(x *Cluster) { x.Balance.PanicThreshold = -1 }, ""},
		{func(x *Cluster) { x.Balance.PanicThreshold = 101 }, "clusters[0].balance.panic_threshold is 101, must be at most 100"},
		{func(x *Cluster) { x.Balance.ActiveRequestBias = 11 }, "clusters[0].balance.active_request_bias is 11, must be"},
		{func(x *Cluster) { x.Balance.SlowStart = &SlowStart{} }, "clusters[0].balance.slow_start.window is 0s, must be above 0"},
		{func(x *Cluster) { x.Balance.SlowStart = &SlowStart{Window: 2 * time.Hour} }, "clusters[0].balance.slow_start.window is 2h0m0s, must be"},
		{func(x *Cluster) { x.Balance.SlowStart = &SlowStart{Window: time.Second, MinWeightPercent: 200} }, "clusters[0].balance.slow_start.min_weight_percent is 200, must be 0.1 to 100"},
		{func(x *Cluster) { x.Balance.SlowStart = &SlowStart{Window: time.Second, Aggression: 20} }, "clusters[0].balance.slow_start.aggression is 20, must be"},
		{func(x *Cluster) { x.Balance.SlowStart = &SlowStart{Window: -1} }, "clusters[0].balance.slow_start.window is -1ns, must be"},
		{func(x *Cluster) { x.Balance.Subset = new(Subset) }, "clusters[0].balance.subset.size is 0, must be 1 or more"},
		{func(x *Cluster) { x.Balance.LoadReports = &LoadReports{WeightUpdatePeriod: time.Millisecond} }, "clusters[0].balance.load_reports.weight_update_period is 1ms, must be"},
		{func(x *Cluster) { x.Balance.LoadReports = &LoadReports{WeightUpdatePeriod: time.Hour} }, "clusters[0].balance.load_reports.weight_update_period is 1h0m0s, must be"},
		{func(x *Cluster) { x.Balance.LoadReports = &LoadReports{WeightExpirationPeriod: time.Millisecond} }, "clusters[0].balance.load_reports.weight_expiration_period is 1ms, must be"},
		{func(x *Cluster) { x.Balance.LoadReports = &LoadReports{ErrorUtilizationPenalty: 1e6} }, "clusters[0].balance.load_reports.error_utilization_penalty is 1e+06, must be"},
		{func(x *Cluster) { x.Balance.LoadReports = &LoadReports{OutOfBandPeriod: time.Millisecond} }, "clusters[0].balance.load_reports.oob_reporting_period is 1ms, must be 0, or 100ms"},
		{func(x *Cluster) { x.OutlierDetection = new(OutlierDetection) }, ""},
		{func(x *Cluster) { x.OutlierDetection = &OutlierDetection{Interval: 1} }, "clusters[0].outlier_detection.interval is 1ns, must be"},
		{func(x *Cluster) { x.OutlierDetection = &OutlierDetection{BaseEjectionTime: 2 * time.Hour} }, "clusters[0].outlier_detection.base_ejection_time is 2h0m0s, must be"},
		{func(x *Cluster) {
			x.OutlierDetection = &OutlierDetection{BaseEjectionTime: time.Minute, MaxEjectionTime: time.Second}
		}, "clusters[0].outlier_detection.max_ejection_time is 1s, must be 1m0s"},
		{func(x *Cluster) { x.OutlierDetection = &OutlierDetection{MaxEjectionPercent: 101} }, "clusters[0].outlier_detection.max_ejection_percent is 101, must be"},
		{func(x *Cluster) { x.OutlierDetection = &OutlierDetection{SuccessRateRequestVolume: -1} }, "clusters[0].outlier_detection.success_rate_request_volume is -1, must be"},
		{func(x *Cluster) { x.OutlierDetection = &OutlierDetection{SuccessRateStdevFactor: -1} }, "clusters[0].outlier_detection.success_rate_stdev_factor is -1, must be"},
		{func(x *Cluster) { x.Health = &Health{NoTrafficInterval: 48 * time.Hour} }, "clusters[0].health.no_traffic_interval is 48h0m0s, must be"},
	} {
		x := base()
		row.change(&x)
		c := Config{Listeners: []Listener{{Address: "127.0.0.1:0"}}, Clusters: []Cluster{x}}
		switch err := c.Check(); {
		case row.want == "" && err != nil:
			t.Errorf("%+v: %v", x.Balance, err)
		case row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)):
			t.Errorf("%v, want %s", err, row.want)
		case row.want != "" && strings.Contains(err.Error(), "\n"):
			t.Errorf("several errors for one mistake: %v", err)
		}
	}
}

func TestSubsetOfTheCluster(t *testing.T) {
	x := Cluster{Endpoints: []string{"a:1", "b:1", "c:1", "d:1"}}
	if got := x.Subset(); len(got) != 4 {
		t.Errorf("without a subset: %v", got)
	}
	seen := make(map[string]int)
	for client := range uint64(4) {
		x.Balance.Subset = &Subset{Size: 2, Client: client}
		got := x.Subset()
		if len(got) != 2 {
			t.Errorf("client %d: %v", client, got)
		}
		for _, e := range got {
			seen[e]++
		}
	}
	for e, n := range seen {
		if n != 2 {
			t.Errorf("%s is used by %d of 4 clients: %v", e, n, seen)
		}
	}
}
