package otel

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// logEvery is the minimum interval between log lines, and maxError the maximum length of an
// error in bytes.
const (
	logEvery = time.Minute
	maxError = 300
)

// failures logs failures at a bounded rate. It is safe for concurrent use.
type failures struct {
	logger *slog.Logger

	mu     sync.Mutex
	logged time.Time
	more   int // since then
}

// Handle implements otel.ErrorHandler.
func (f *failures) Handle(err error) {
	if errors.Is(err, context.Canceled) { // by Close, which makes another export
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if !f.logged.IsZero() && now.Sub(f.logged) < logEvery {
		f.more++
		return
	}
	text := err.Error()
	f.logger.Warn("metrics or spans were not sent", "error", text[:min(len(text), maxError)], "failures_before", f.more)
	f.logged, f.more = now, 0
}
