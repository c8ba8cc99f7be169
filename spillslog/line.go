package spillslog

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/telemetry"
)

// A line waits to be written. It has nothing of the request but a few strings.
type line struct {
	logger *slog.Logger
	level  slog.Level
	text   string
	attrs  []slog.Attr
}

// enqueue queues a line. It reports false if the level is disabled or the queue is full.
func (o *Observer) enqueue(e *spillway.Event, k telemetry.Kind, s *slot) bool {
	l := line{level: slog.LevelWarn, text: "request rejected"}
	switch {
	case e.Policy == telemetry.PolicyHedge:
		l.level, l.text = slog.LevelInfo, "hedge not sent"
	case e.Mode != spillway.ModeEnforce:
		l.level, l.text = slog.LevelInfo, "request would be rejected"
	case !e.Rejected:
		l.text = "call not retried"
	}
	if !o.logger().Enabled(context.Background(), l.level) {
		return false
	}
	l.attrs = o.attrs(e, k)
	return o.add(l, &s.leftOut)
}

func (o *Observer) logger() *slog.Logger { return cmp.Or(o.config.Logger, slog.Default()) }

// add queues a line, with the number of lines that were left out before it, if that is counted.
// It reports false if the queue is full.
func (o *Observer) add(l line, leftOut *atomic.Uint64) bool {
	l.logger = o.logger()
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) >= maxQueue {
		return false
	}
	if leftOut != nil {
		l.attrs = append(l.attrs, slog.Uint64("left_out", leftOut.Swap(0)))
	}
	o.queue = append(o.queue, l)
	if !o.writing {
		o.writing = true
		go o.write()
	}
	return true
}

// write writes lines until there are no more.
func (o *Observer) write() {
	for {
		o.mu.Lock()
		if len(o.queue) == 0 {
			o.writing, o.queue = false, nil
			o.written.Broadcast()
			o.mu.Unlock()
			return
		}
		l := o.queue[0]
		o.queue = o.queue[1:]
		o.mu.Unlock()
		l.logger.LogAttrs(context.Background(), l.level, l.text, l.attrs...)
	}
}

// attrs returns what a line says.
func (o *Observer) attrs(e *spillway.Event, k telemetry.Kind) []slog.Attr {
	all := make([]slog.Attr, 0, 16)
	add := func(key, value string) {
		if value != "" {
			all = append(all, slog.String(key, cut(value, maxValue)))
		}
	}
	policy, reason, advice := k.Policy(), k.Reason(), telemetry.Advice(k)
	if e.Policy == telemetry.PolicyHedge {
		policy, reason, advice = e.Policy, "budget", telemetry.HedgeAdvice
	}
	add("policy", policy)
	add("reason", reason)
	add("route", e.Call.Key)
	customer := e.Call.Customer
	if customer != "" && o.config.Customer != nil {
		customer = o.config.Customer(customer)
	}
	add("customer", customer)
	add("criticality", e.Call.Criticality.String())
	if e.Call.Attempt > 0 {
		all = append(all, slog.Int("attempt", int(e.Call.Attempt)))
	}
	all = measured(all, e)
	if r, ok := errors.AsType[*spillway.RejectedError](e.Err); ok && e.Rejected && r.Setting != "" {
		add("setting", r.Setting)
		advice = r.Advice
	}
	if o.config.RequestID != nil && e.Context != nil {
		add("request_id", o.config.RequestID(e.Context))
	}
	if advice != "" {
		all = append(all, slog.String("do", cut(advice, maxAdvice)))
	}
	return all
}

// measured adds what the policy has measured.
func measured(all []slog.Attr, e *spillway.Event) []slog.Attr {
	r, ok := errors.AsType[*spillway.RejectedError](e.Err)
	if !e.Rejected || !ok {
		return all
	}
	if r.Measured() {
		all = append(all, slog.Float64("measured", e.Level))
	}
	if r.Unit != "" {
		if e.Limit != 0 || e.Level == 0 { // a quota has no limit in the unit of its level
			all = append(all, slog.Float64("limit", e.Limit))
		}
		all = append(all, slog.String("unit", r.Unit))
	}
	if r.RetryAfter > 0 {
		all = append(all, slog.Duration("retry_after", r.RetryAfter))
	}
	return all
}

// cut returns a copy of a value of at most n bytes, so that what it was part of is not kept.
func cut(value string, n int) string {
	if len(value) <= n {
		return strings.Clone(value)
	}
	return strings.ToValidUTF8(value[:n], "") + "…" // a rune may be cut
}
