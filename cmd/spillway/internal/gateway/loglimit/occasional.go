package loglimit

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// An Occasional writes at most one line per second, with the number of lines that were left out since
// the last one, as more. It is safe for concurrent use; make one with [NewOccasional].
type Occasional struct {
	logger *slog.Logger
	last   atomic.Int64 // in nanoseconds since 1970
	missed atomic.Int64
}

// NewOccasional returns an Occasional that writes to a logger.
func NewOccasional(logger *slog.Logger) *Occasional { return &Occasional{logger: logger} }

// Warn writes a warning, unless one was written less than a second ago.
func (o *Occasional) Warn(text string, args ...any) {
	now, last := time.Now().UnixNano(), o.last.Load()
	if now-last >= 0 && now-last < int64(time.Second) || !o.last.CompareAndSwap(last, now) {
		o.missed.Add(1)
		return
	}
	o.logger.Warn(text, append(args, "more", o.missed.Swap(0))...)
}
