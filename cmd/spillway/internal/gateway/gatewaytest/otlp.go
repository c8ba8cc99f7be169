package gatewaytest

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"
)

// An Export is the content of one export request.
type Export struct {
	Header   http.Header
	Resource map[string]string
	Figures  map[string]float64 // by what Prometheus calls them: name{label="value"}
}

// A Receiver keeps the exports that it receives at Endpoint.
type Receiver struct {
	Endpoint string
	Status   atomic.Int32 // with which it answers; 0 is 200
	Asked    atomic.Int32 // how many requests came

	exports chan Export
}

// NewReceiver returns a Receiver that ends with the test.
func NewReceiver(t *testing.T) *Receiver {
	t.Helper()
	r := &Receiver{exports: make(chan Export, 1000)}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.Asked.Add(1)
		if status := r.Status.Load(); status != 0 {
			http.Error(w, "no", int(status))
			return
		}
		x, err := read(req)
		if err != nil {
			t.Errorf("what came is no export: %v", err)
			return
		}
		r.exports <- x
	}))
	t.Cleanup(s.Close)
	r.Endpoint = s.URL
	return r
}

// Wait returns the next export that matches.
func (r *Receiver) Wait(t *testing.T, wanted func(Export) bool) Export {
	t.Helper()
	late := time.After(10 * time.Second)
	for {
		select {
		case x := <-r.exports:
			if wanted(x) {
				return x
			}
		case <-late:
			t.Fatal("no such export in time")
		}
	}
}

// Last returns the last export, and whether an export arrived since the last call.
func (r *Receiver) Last() (x Export, ok bool) {
	for {
		select {
		case x = <-r.exports:
			ok = true
		default:
			return x, ok
		}
	}
}

func read(r *http.Request) (x Export, err error) {
	if r.Method != http.MethodPost || r.URL.Path != "/v1/metrics" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		return x, fmt.Errorf("%s %s %s", r.Method, r.URL, r.Header)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return x, err
	}
	var all collector.ExportMetricsServiceRequest
	if err := proto.Unmarshal(body, &all); err != nil {
		return x, err
	}
	x = Export{Header: r.Header, Resource: make(map[string]string), Figures: make(map[string]float64)}
	for _, of := range all.GetResourceMetrics() {
		maps.Copy(x.Resource, attributes(of.GetResource().GetAttributes()))
		for _, scope := range of.GetScopeMetrics() {
			for _, m := range scope.GetMetrics() {
				x.add(m)
			}
		}
	}
	return x, nil
}

func attributes(all []*common.KeyValue) map[string]string {
	m := make(map[string]string, len(all))
	for _, x := range all {
		m[x.GetKey()] = x.GetValue().GetStringValue()
	}
	return m
}

func (x *Export) add(m *metrics.Metric) {
	for _, p := range m.GetGauge().GetDataPoints() {
		x.Figures[series(m.GetName(), attributes(p.GetAttributes()))] = p.GetAsDouble()
	}
	for _, p := range m.GetSum().GetDataPoints() {
		if m.GetSum().GetAggregationTemporality() == metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE && m.GetSum().GetIsMonotonic() {
			x.Figures[series(m.GetName(), attributes(p.GetAttributes()))] = p.GetAsDouble()
		}
	}
	for _, p := range m.GetSummary().GetDataPoints() {
		labels := attributes(p.GetAttributes())
		x.Figures[series(m.GetName()+"_count", labels)] = float64(p.GetCount())
		x.Figures[series(m.GetName()+"_sum", labels)] = p.GetSum()
	}
	for _, p := range m.GetHistogram().GetDataPoints() {
		labels := attributes(p.GetAttributes())
		x.Figures[series(m.GetName()+"_count", labels)] = float64(p.GetCount())
		x.Figures[series(m.GetName()+"_sum", labels)] = p.GetSum()
		below := uint64(0)
		for i, bound := range p.GetExplicitBounds() {
			below += p.GetBucketCounts()[i]
			labels["le"] = fmt.Sprint(bound)
			x.Figures[series(m.GetName()+"_bucket", labels)] = float64(below)
		}
	}
}

func series(name string, labels map[string]string) string {
	parts := make([]string, 0, len(labels))
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, fmt.Sprintf("%s=%q", k, labels[k]))
	}
	return name + "{" + strings.Join(parts, ",") + "}"
}

// Figures returns the values of Prometheus metrics, named as in [Export].
func Figures(families []*dto.MetricFamily) map[string]float64 {
	samples, _ := expfmt.ExtractSamples(new(expfmt.DecodeOptions), families...) // a family of an unknown type has none
	all := make(map[string]float64)
	for _, s := range samples {
		labels := make(map[string]string)
		for name, value := range s.Metric {
			labels[string(name)] = string(value)
		}
		if labels[model.QuantileLabel] != "" || labels[model.BucketLabel] == "+Inf" {
			continue // exports have neither; the latter is the count
		}
		name := labels[model.MetricNameLabel]
		delete(labels, model.MetricNameLabel)
		all[series(name, labels)] = float64(s.Value)
	}
	return all
}
