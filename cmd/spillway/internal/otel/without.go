//go:build !otel

package otel

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed90641741/spillway/cmd/spillway/internal/config"
)

// An Exporter is none in a program without the build tag otel.
type Exporter struct{}

// Check refuses a configuration of an export, with a [*config.Error]. Nil asks for none.
func Check(c *config.Otel) error {
	if c == nil {
		return nil
	}
	return &config.Error{Field: "otel", Problem: "is given, but this program was built without it: build it with go build -tags otel"}
}

// Start returns nil, and the error of Check.
func Start(c *config.Otel, _ string, _ prometheus.Gatherer, _ *slog.Logger) (*Exporter, error) {
	return nil, Check(c)
}

// Close does nothing.
func (*Exporter) Close() {}
