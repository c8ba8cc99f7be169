package exporters

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/keys"
)

const (
	patience    = 10 * time.Second // for one export
	lastWords   = 5 * time.Second  // for the one at the end
	maxResponse = 16 << 10         // bytes of an answer that are read
)

// An Exporter sends metrics or spans to the endpoint until it is closed.
type Exporter struct {
	client    *http.Client
	failures  otel.ErrorHandlerFunc
	lastWords time.Duration
	provider  interface {
		Shutdown(ctx context.Context) error
	}
}

// newExporter returns an Exporter without a provider. All failures of OpenTelemetry in the process
// go to the logger.
func newExporter(c *config.Otel, logger *slog.Logger) (*Exporter, error) {
	secured, err := secrets(c)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if secured != nil {
		transport.TLSClientConfig = secured
	}
	e := &Exporter{lastWords: lastWords, client: &http.Client{
		Transport: keyed{c.HeadersFile, transport},
		// The keys must not be sent to other hosts.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if e.failures, err = failures(logger); err == nil {
		otel.SetErrorHandler(e.failures) // what fails while it runs comes there and nowhere else
	}
	return e, err
}

// Close makes a last export and stops. It takes a few seconds at most, and must be called
// once; on nil it does nothing.
func (e *Exporter) Close() {
	if e == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), e.lastWords)
	defer cancel()
	if err := e.provider.Shutdown(ctx); err != nil {
		e.failures.Handle(err)
	}
	e.client.CloseIdleConnections()
}

// Check returns an error if Start cannot use c. A nil c is valid.
func Check(c *config.Otel) error {
	if c == nil {
		return nil
	}
	if _, err := headers(c.HeadersFile); err != nil {
		return err
	}
	_, err := secrets(c)
	return err
}

// secrets returns the TLS configuration for the endpoint, or nil for the default.
func secrets(c *config.Otel) (*tls.Config, error) {
	s, err := keys.Client(c.TLS)
	if err != nil {
		return nil, fmt.Errorf("otel.tls: %w", err)
	}
	return s.Config, nil
}

// Start exports the gathered metrics to the endpoint of c, which must have passed the checks
// of [config.Parse]. If c is nil, it returns nil. The version is the version of the program.
// All failures of OpenTelemetry in the process go to the logger. The Exporter must be closed.
func Start(c *config.Otel, version string, from prometheus.Gatherer, logger *slog.Logger) (*Exporter, error) {
	if err := Check(c); c == nil || err != nil {
		return nil, err
	}
	e, err := newExporter(c, logger)
	if err != nil {
		return nil, err
	}
	interval := cmp.Or(c.Interval, 15*time.Second)
	timeout := min(interval, patience)
	exporter, err := metricsTo(c, timeout, e.client)
	if err != nil {
		return nil, err
	}
	e.provider = metric.NewMeterProvider(
		metric.WithResource(resourceOf(c, version, e.failures)),
		metric.WithReader(metric.NewPeriodicReader(exporter,
			metric.WithProducer(bridge.NewMetricProducer(bridge.WithGatherer(from))),
			metric.WithInterval(interval), metric.WithTimeout(timeout))))
	return e, nil
}

// metricsTo returns an exporter of metrics to the endpoint. It sets each option that an environment
// variable could change.
func metricsTo(c *config.Otel, timeout time.Duration, client *http.Client) (metric.Exporter, error) {
	return otlpmetrichttp.New(context.Background(),
		otlpmetrichttp.WithEndpointURL(strings.TrimSuffix(c.Endpoint, "/")+"/v1/metrics"),
		otlpmetrichttp.WithHeaders(nil),
		otlpmetrichttp.WithTLSClientConfig(nil),
		otlpmetrichttp.WithCompression(otlpmetrichttp.NoCompression),
		otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{}),
		otlpmetrichttp.WithMaxResponseSize(maxResponse),
		otlpmetrichttp.WithTimeout(timeout),
		otlpmetrichttp.WithHTTPClient(client))
}

// resourceOf returns the resource attributes that identify the proxy.
func resourceOf(c *config.Otel, version string, failed otel.ErrorHandler) *resource.Resource {
	all := []attribute.KeyValue{attribute.String("service.name", "spillway"), attribute.String("service.version", version)}
	for name, value := range c.Resource {
		all = append(all, attribute.String(name, value)) // the last of a name counts
	}
	r, err := resource.New(context.Background(), resource.WithHost(), resource.WithTelemetrySDK(), resource.WithService(),
		resource.WithFromEnv(), resource.WithAttributes(all...))
	if err != nil { // a part is missing
		failed.Handle(err)
	}
	return r
}
