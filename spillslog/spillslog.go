package spillslog

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/telemetry"
)

// Config configures an [Observer]. The zero Config is ready for use.
type Config struct {
	// Logger receives the lines: rejections at level Warn, those that a gate in the mode
	// Observe would have made at level Info. Nil means [slog.Default].
	Logger *slog.Logger
	// Interval is the minimum time between two lines of the same policy, reason, class and mode.
	// Zero means 1 s, negative no lines at all. It must be at least 1 ms.
	Interval time.Duration
	// RequestID returns the id of the request, or "". It is called for lines that are
	// written, on the path of the call: it must be quick and safe for concurrent use. Nil
	// means no id.
	RequestID func(context.Context) string
	// Customer returns what is written in place of a customer, such as a hash: set it
	// where the name of a customer is a secret, such as an API key. It is called as
	// RequestID is. Nil means the name.
	Customer func(string) string
}

const (
	defaultInterval = time.Second
	minInterval     = time.Millisecond
	maxQueue        = 64  // lines: more than one for each reason and class of an overload
	maxValue        = 128 // bytes of a value
	maxAdvice       = 512 // bytes of what to do, which no client has a part in
)

// An Observer writes rejections to a log. It is safe for concurrent use; make one with [New].
type Observer struct {
	config Config
	start  time.Time
	slots  [telemetry.Modes][telemetry.Kinds][spillway.Criticalities]slot

	mu      sync.Mutex
	written sync.Cond // broadcast when the queue is empty
	writing bool
	queue   []line // at most maxQueue
}

// A slot is for lines of one mode, kind and class.
type slot struct {
	last    atomic.Int64 // when the last line was written, since the start; never: none was
	leftOut atomic.Uint64
}

const never = math.MinInt64

var _ spillway.Observer = (*Observer)(nil)

// New returns an Observer, or an error that names the field of c that is wrong.
func New(c Config) (*Observer, error) {
	if c.Interval == 0 {
		c.Interval = defaultInterval
	}
	if c.Interval > 0 && c.Interval < minInterval {
		return nil, fmt.Errorf("spillslog: %w", &spillway.FieldError{
			Path: "Interval", Value: c.Interval, Allowed: fmt.Sprintf("at least %v, or negative for no lines", minInterval),
		})
	}
	o := &Observer{config: c, start: time.Now()}
	o.written.L = &o.mu
	for mode := range o.slots {
		for kind := range o.slots[mode] {
			for class := range o.slots[mode][kind] {
				o.slots[mode][kind][class].last.Store(never)
			}
		}
	}
	return o, nil
}

// Observe implements [spillway.Observer].
func (o *Observer) Observe(e spillway.Event) {
	if o.config.Interval < 0 || !e.Rejected && (e.Err == nil || e.Policy != "retry") {
		return
	}
	k := telemetry.KindOf(&e)
	if k.Code() < telemetry.Rejected {
		return
	}
	mode := 0
	if e.Mode != spillway.ModeEnforce {
		mode = 1
	}
	s := &o.slots[mode][k][e.Call.Criticality.Index()]
	if !s.due(e.Time.Sub(o.start), o.config.Interval) || !o.enqueue(&e, k, s) {
		s.leftOut.Add(1)
	}
}

// due reports whether a line may be written at a time since the start, and takes its place
// if so. A clock that was set back does not silence the log.
func (s *slot) due(at, interval time.Duration) bool {
	last := s.last.Load()
	if last != never {
		if since := int64(at) - last; since < int64(interval) && since > -int64(interval) {
			return false
		}
	}
	return s.last.CompareAndSwap(last, int64(at))
}

// Flush waits until all lines that were queued before are written. It is for the end of a
// program.
func (o *Observer) Flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.writing {
		o.written.Wait()
	}
}
