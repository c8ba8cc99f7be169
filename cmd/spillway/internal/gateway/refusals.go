package gateway

import (
	"log/slog"
	"sync/atomic"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/routes"
	"github.com/seed90641741/spillway/ratelimit"
)

// refusals writes to the log what gates refuse, or would, at a bounded rate: an overload
// must not become one of the log. Each line says how many were left out before it. It
// is an [spillway.Observer] in front of another one, which is told of everything.
type refusals struct {
	next    spillway.Observer // nil: nobody
	logger  *slog.Logger
	lines   *ratelimit.Limiter
	off     atomic.Bool
	missing atomic.Uint64
}

func newRefusals(logger *slog.Logger, next spillway.Observer) *refusals {
	r := &refusals{next: next, logger: logger}
	r.lines, _ = ratelimit.New(linesPer(1)) // cannot fail
	return r
}

// linesPer is for so many lines per second, of which some may come at once, and one
// always.
func linesPer(second float64) ratelimit.Config {
	return ratelimit.Config{Rate: second, BurstSeconds: max(1, 1/second)}
}

// update has it write so many lines per second; negative is none.
func (r *refusals) update(second float64) error {
	r.off.Store(second < 0)
	if second < 0 {
		return nil
	}
	return r.lines.Update(linesPer(second))
}

// Observe implements [spillway.Observer].
func (r *refusals) Observe(e spillway.Event) {
	if r.next != nil {
		r.next.Observe(e)
	}
	if e.Refused && !r.off.Load() {
		r.write(&e)
	}
}

func (r *refusals) write(e *spillway.Event) {
	if _, err := r.lines.Admit(e.Time, spillway.Call{}); err != nil {
		r.missing.Add(1)
		return
	}
	text := "refused"
	if e.Mode == spillway.ModeObserve {
		text = "would be refused"
	}
	r.logger.Warn(text, "policy", e.Policy, "cluster", routes.ClusterOf(e.Call.Key), "criticality", e.Call.Criticality.String(),
		"customer", e.Call.Customer, "reason", e.Err, "left_out", r.missing.Swap(0))
}
