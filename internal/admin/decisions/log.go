package decisions

import (
	"cmp"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin/accounts"
	"github.com/seed90641741/spillway/internal/admin/loglimit"
	"github.com/seed90641741/spillway/internal/admin/runbook"
	"github.com/seed90641741/spillway/internal/frequent"
	"github.com/seed90641741/spillway/internal/telemetry"
)

const (
	// kept is the number of samples that are kept for each reason and class: a screen.
	kept = 64
	// perSecond limits the samples of one second, so that even in a flood the samples cover more
	// than a second.
	perSecond = 25
)

// A Log remembers rejections. It is safe for concurrent use; make one with [New].
type Log struct {
	logger  *slog.Logger
	silent  atomic.Bool
	library *library // nil: a proxy rejects

	samples                    [accounts.Reasons * spillway.Criticalities]ring
	routes, customers, callers window
	rejected                   *frequent.Rows // customers, since the start
}

// A ring has the last samples of one reason and class, and bounds their lines.
type ring struct {
	seen  atomic.Uint64  // rejections, with and without a sample
	lines *loglimit.Rate // of each reason and class by itself: one flood must not hide others

	mu     sync.Mutex
	second int64 // that the latest sample is of
	taken  int   // samples of that second
	last   []Decision
	next   int // of last, once it is full
}

// New returns an empty Log. Lines go to the logger; nil writes no lines.
func New(logger *slog.Logger) *Log {
	l := &Log{logger: cmp.Or(logger, slog.New(slog.DiscardHandler)), rejected: frequent.NewRows(telemetry.DefaultCustomers, leastOfAll)}
	for i := range l.samples {
		l.samples[i].lines, _ = loglimit.NewRate(1) // it is in range
	}
	return l
}

// ring returns that of a reason and class.
func (l *Log) ring(reason accounts.Reason, class spillway.Criticality) *ring {
	return &l.samples[int(reason)*spillway.Criticalities+class.Index()]
}

// SetRate sets how many lines are written per second for each reason and class; negative is none.
func (l *Log) SetRate(second float64) error {
	l.silent.Store(second < 0)
	if second < 0 {
		return nil
	}
	for i := range l.samples {
		if err := l.samples[i].lines.Update(second); err != nil {
			return err
		}
	}
	return nil
}

// Before returns an observer that reports each event to the Log and to next, which may be nil.
func (l *Log) Before(next spillway.Observer) spillway.Observer {
	if next == nil {
		return l
	}
	return spillway.ObserverFunc(func(e spillway.Event) {
		next.Observe(e)
		l.Observe(e)
	})
}

// Observe implements [spillway.Observer].
func (l *Log) Observe(e spillway.Event) {
	if !e.Rejected {
		return
	}
	var s Source
	if e.Context != nil && l.library == nil {
		s, _ = e.Context.Value(SourceKey{}).(Source)
	}
	caller := ""
	switch {
	case s != nil:
		route, customer := s.Place()
		e.Call.Key, e.Call.Customer = cmp.Or(route, e.Call.Key), cmp.Or(e.Call.Customer, customer)
		caller = s.Caller()
	case l.library != nil:
		caller = l.library.callerOf(e.Context)
	}
	l.reject(&e, s, caller, "")
}

// Reject adds a rejection that the proxy made itself, without a policy.
func (l *Log) Reject(now time.Time, reason accounts.Reason, call spillway.Call, s Source, level, limit float64, unit string) {
	caller := ""
	if s != nil {
		caller = s.Caller()
	}
	l.reject(&spillway.Event{
		Time: now, Reason: spillway.Reason(reason), Policy: ByProxy, Mode: spillway.ModeEnforce, Call: call, Level: level, Limit: limit,
	}, s, caller, unit)
}

// reject counts a rejection, and keeps a sample and writes a line if they are due. The source may be nil. The
// unit is that of what the proxy itself measured.
func (l *Log) reject(e *spillway.Event, s Source, caller, unit string) {
	reason := accounts.Reason(e.Reason)
	l.count(e.Time, reason, &e.Call, e.Mode, caller)
	r := l.ring(reason, e.Call.Criticality)
	sample, line := r.due(e.Time), !l.silent.Load() && r.lines.Admit(e.Time)
	if !sample && !line {
		return
	}
	d := l.of(e, s, caller)
	d.MeasuredByProxy(e.Level, e.Limit, unit)
	if sample {
		r.add(d)
	}
	if line {
		l.write(&d, r.lines.Reset())
	}
}

// count counts a rejection for the top lists.
func (l *Log) count(now time.Time, reason accounts.Reason, call *spillway.Call, mode spillway.Mode, caller string) {
	l.ring(reason, call.Criticality).seen.Add(1)
	tag := tagOf(reason, call.Criticality, mode)
	if call.Key != "" {
		l.routes.add(now, call.Key, tag)
	}
	l.customers.add(now, call.Customer, tag) // without a customer, too: they may be most
	if mode == spillway.ModeEnforce {
		l.rejected.Add(call.Customer, tag)
	}
	if caller != "" {
		l.callers.add(now, caller, tag)
	}
}

// due reports whether to add a sample. It returns false while another one is being added.
func (r *ring) due(now time.Time) bool {
	if !r.mu.TryLock() {
		return false
	}
	defer r.mu.Unlock()
	if second := now.Unix(); second != r.second {
		r.second, r.taken = second, 0
	}
	r.taken++
	return r.taken <= perSecond
}

func (r *ring) add(d Decision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.last) < kept {
		r.last = append(r.last, d)
		return
	}
	r.last[r.next] = d
	r.next = (r.next + 1) % kept
}

// write writes the line of a decision. leftOut is the number of lines of its reason and class that
// were left out before it.
func (l *Log) write(d *Decision, leftOut uint64) {
	text := "request rejected"
	if d.Mode == spillway.ModeObserve.String() {
		text = "request would be rejected"
	}
	what := d.Entry()
	args := make([]any, 0, 40)
	add := func(namesAndValues ...string) {
		for pair := range slices.Chunk(namesAndValues, 2) {
			if pair[1] != "" {
				args = append(args, pair[0], pair[1])
			}
		}
	}
	add("reason", d.Reason, "policy", d.Policy, "listener", d.Listener, "cluster", d.Cluster, "route", d.Route, "path", d.Path,
		"customer", d.Customer, "caller", d.Caller, "class", d.Criticality, "request_id", d.RequestID, "trace_id", d.TraceID)
	if d.Unit != "" {
		if d.Measured != nil {
			args = append(args, "measured", *d.Measured)
		}
		if d.Limit != 0 {
			args = append(args, "limit", d.Limit)
		}
		args = append(args, "unit", d.Unit)
	}
	add("setting", d.Setting, "error", d.Text, "do", what.Do, "settings", strings.Join(d.Settings(), ", "), "runbook", what.Link())
	l.logger.Warn(text, append(args, "left_out", leftOut)...)
}

// Entry returns what to do about a decision.
func (d *Decision) Entry() runbook.Entry {
	if d.Library {
		return runbook.OfLibrary(d.Policy, d.Reason, d.Setting)
	}
	return runbook.Of(d.Policy, d.Reason, d.limitedBy())
}

// limitedBy returns the setting of a decision, or that it concerns the requests without a customer.
func (d *Decision) limitedBy() string {
	if !d.Library && d.Reason == spillway.ReasonQuota.String() && d.Setting == "" && d.Customer == "" {
		return runbook.NoCustomer
	}
	return d.Setting
}

// Settings returns the fields of the configuration that a decision depends on: clusters[shop].quota.
func (d *Decision) Settings() (all []string) {
	if d.Library {
		return d.Entry().Settings
	}
	names := map[string]string{"clusters": d.Cluster, "listeners": d.Listener, "routes": d.Route}
	if d.Mongo {
		names = map[string]string{"mongo": d.Listener}
	}
	for _, pattern := range d.Entry().Settings {
		section, field, several := strings.Cut(pattern, "[]")
		switch name, ok := names[section]; {
		case several && ok && name != "":
			all = append(all, section+"["+Clean(name)+"]"+field)
		case ok || !several:
			all = append(all, pattern)
		}
	}
	return all
}

// Read returns the samples that match, the latest first, and at most n of them. Seen is how many
// rejections there were for the reasons of the filter, with and without a sample.
func (l *Log) Read(f *Filter, n int) (all []Decision, seen uint64) {
	for i := range l.samples {
		if f.Reason != "" && f.Reason != accounts.Reason(i/spillway.Criticalities).String() {
			continue
		}
		seen += l.samples[i].seen.Load()
		all = l.samples[i].read(f, all)
	}
	slices.SortStableFunc(all, func(a, b Decision) int { return b.Time.Compare(a.Time) })
	return all[:min(n, len(all))], seen
}

func (r *ring) read(f *Filter, to []Decision) []Decision {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.last { // the latest first
		if d := &r.last[(r.next+len(r.last)-1-i)%len(r.last)]; f.matches(d) {
			to = append(to, *d)
		}
	}
	return to
}

// Last returns the latest sample of a reason by a policy in a mode. It reports false without
// one.
func (l *Log) Last(policy, reason, mode string) (Decision, bool) {
	all, _ := l.Read(&Filter{Policy: policy, Reason: reason, Mode: mode}, 1)
	if len(all) == 0 {
		return Decision{}, false
	}
	return all[0], true
}

// Tops are the top lists.
type Tops struct {
	Routes    Top `json:"routes"`
	Customers Top `json:"customers"`
	Callers   Top `json:"callers"`
}

// Top returns the top lists, each with at most the given number of rows.
func (l *Log) Top(now time.Time, most int) Tops {
	return Tops{l.routes.top(now, most), l.customers.top(now, most), l.callers.top(now, most)}
}
