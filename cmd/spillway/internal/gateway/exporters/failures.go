package exporters

import (
	"context"
	"errors"
	"log/slog"

	"go.opentelemetry.io/otel"

	"github.com/seed90641741/spillway/internal/admin/loglimit"
)

// logRate is how many failures are logged per second, and maxError the maximum length of an
// error in bytes.
const (
	logRate  = 1.0 / 60
	maxError = 300
)

// failures returns a handler that logs failures at a bounded rate.
func failures(logger *slog.Logger) (otel.ErrorHandlerFunc, error) {
	bounded, err := loglimit.New(logger, logRate)
	return func(err error) {
		if errors.Is(err, context.Canceled) { // by Close, which makes another export
			return
		}
		text := err.Error()
		bounded.Warn("metrics or spans were not sent", "error", text[:min(len(text), maxError)])
	}, err
}
