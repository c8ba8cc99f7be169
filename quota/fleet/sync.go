package fleet

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seed90641741/spillway"
)

// Sync sends a report to the board and receives the levels, in one round trip. A leader publishes
// new levels in a second one. All data counts as received at the time now. Sync returns the error
// of the board, ErrFenced if another task has become leader, or an error for invalid levels; the
// Fleet continues in any case. [Run] calls it. Concurrent calls wait for one another.
func (f *Fleet) Sync(ctx context.Context, now time.Time, b Board) error {
	f.syncing.Lock()
	defer f.syncing.Unlock()
	heard, err := b.Sync(ctx, f.say(now))
	if err == nil {
		var p Publication
		var levels *Levels
		if p, levels, err = f.hear(now, heard); levels != nil {
			if publishing := b.Publish(ctx, p); publishing == nil {
				f.took(now, levels)
			} else {
				err = errors.Join(err, publishing)
			}
		}
	}
	f.count(err)
	return err
}

// took stores levels that this task has published.
func (f *Fleet) took(now time.Time, l *Levels) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.take(now, l)
}

// unlocked calls do without f.mu. The caller holds f.mu before and after, also if do panics: its
// callers unlock in any case, and unlocking twice would end the process.
func (f *Fleet) unlocked(do func()) {
	f.mu.Unlock()
	defer f.mu.Lock()
	do()
}

// count counts a round trip.
func (f *Fleet) count(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stats.SyncsTotal++
	switch {
	case errors.Is(err, ErrFenced):
		f.stats.FencedTotal++
	case err != nil:
		f.stats.ErrorsTotal++
	}
}

// Leave removes this task from the board, so that the others get its share at once. A later Sync
// joins again.
func (f *Fleet) Leave(ctx context.Context, b Board) error {
	f.syncing.Lock()
	defer f.syncing.Unlock()
	f.table = nil
	return b.Leave(ctx, f.task)
}

// say returns the data that this task sends to the board.
func (f *Fleet) say(now time.Time) Said {
	f.mu.Lock()
	defer f.mu.Unlock()
	dt := max(now.Sub(f.said), time.Millisecond)
	if f.said.IsZero() {
		dt = f.cfg.Interval
	}
	f.said = now
	f.seq++
	s := Said{Task: f.task, Report: f.report(now, dt), Lease: 5 * f.cfg.Interval, Keep: f.cfg.keep()}
	if f.fence < maxEpoch/2 { // a wrong epoch from one board must not exceed the range of another
		s.Epoch = f.fence
	}
	if f.word != nil {
		s.Has = f.word.Version
	}
	f.stats.ReportBytes = len(s.Report)
	return s
}

// report encodes what customers need and have used, without quiet ones. It forgets customers that
// had no calls for a while.
func (f *Fleet) report(now time.Time, dt time.Duration) []byte {
	b := newReport(report{incarnation: f.incarnation, seq: f.seq, config: f.cfg.hash})
	f.stats.Customers = 0
	for i, e := range f.order {
		if i%256 == 255 {
			f.mu.Unlock() // lets calls pass
			f.mu.Lock()
		}
		e.smooth(dt)
		if e.idle = now.Sub(e.seen) > f.cfg.forget && !f.isWanted(e); e.idle {
			delete(f.entries, e.name)
			if !e.listed && e.name != "" {
				f.names--
			}
			continue
		}
		if f.isQuiet(e) {
			e.since, e.used = 0, 0
			continue
		}
		if e.since == 0 {
			e.since, e.told = f.seq, now
		}
		f.stats.Customers++
		b = appendUsage(b, &usage{name: e.name, age: f.seq - e.since, used: e.used, wants: e.wants})
	}
	f.order = slices.DeleteFunc(f.order, func(e *entry) bool { return e.idle })
	return b
}

// isWanted reports whether a customer without recent calls is kept: it is near its limit, and its
// calls are rare.
func (f *Fleet) isWanted(e *entry) bool {
	return e.wants != [spillway.Criticalities]float64{} && e.bounds.own && e.leveled
}

// isQuiet reports whether the board need not know of a customer: the levels leave it out, and its
// demand in this task is at most half of an equal share.
func (f *Fleet) isQuiet(e *entry) bool {
	if f.word == nil || !e.bounds.own {
		return false
	}
	if _, leveled := f.word.customers[e.name]; leveled {
		return false
	}
	sum := 0.
	for _, w := range e.wants {
		sum += w
	}
	return sum <= quietShare*e.bounds.most/float64(f.word.Tasks)
}

// smooth updates the smoothed demand with what was offered in dt.
func (e *entry) smooth(dt time.Duration) {
	over := dt.Seconds()
	if covered := e.covered.Seconds(); covered >= over/2 && covered <= over*3/2 {
		over = covered // the leases that ended in dt do not fill it exactly
	}
	for class, n := range e.offered {
		w := e.wants[class]
		calls := float64(w * over) // in dt
		if n >= 2 {                // one call alone shows no rate
			calls = max(calls, n)
		}
		memory := min(max(2*over/calls, shortMemory), longMemory)
		a := max(calls/24, over/memory)
		w += float64(min(a, 1) * (n/over - w))
		if w < leastWants {
			w = 0
		}
		e.wants[class] = w
	}
	e.offered, e.covered = [spillway.Criticalities]float64{}, 0
}

// hear processes what the board returns. If this task leads, it returns levels to publish.
func (f *Fleet) hear(now time.Time, h Heard) (p Publication, levels *Levels, err error) {
	if h.Epoch == 0 || h.Epoch > maxEpoch {
		return p, nil, errors.New("fleet: the epoch of the board is out of range")
	}
	var got *Levels
	if h.Levels != nil {
		got, err = parseLevels(h.Levels, f.levels())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	late := h.Epoch < f.fence
	if late && now.Sub(f.raised) > f.cfg.Grace && (f.word == nil || now.Sub(f.word.heard) > f.cfg.Grace) {
		f.fence, late = 0, false // the board may have returned a wrong epoch before
	}
	if got != nil {
		f.take(now, got)
	}
	f.raise(now, h.Epoch)
	f.stats.Leader = h.Leader && !late
	if !h.Leader || late {
		f.table = nil
		f.stats.ConfigConflict = false
		return p, nil, err
	}
	p, levels = f.lead(now, h)
	return p, levels, err
}

// lead computes levels as the leader of an epoch.
func (f *Fleet) lead(now time.Time, h Heard) (p Publication, levels *Levels) {
	if f.table == nil || f.epoch != h.Epoch || f.table.cfg != f.cfg {
		f.table, f.epoch = f.nextTable(h.Epoch), h.Epoch
	}
	table := f.table
	table.clock = now
	// Calls pass meanwhile. Only Sync uses the table.
	f.unlocked(func() { p, levels = f.publication(table, h) })
	f.stats.ConfigConflict = table.conflict()
	return p, levels
}

// publication returns levels to publish, or nil.
func (f *Fleet) publication(table *Table, h Heard) (Publication, *Levels) {
	levels, ok := table.levels(h.Now, h.Since, h.Reports)
	if !ok {
		return Publication{}, nil
	}
	levels.Epoch = h.Epoch
	return Publication{
		Task: f.task, Version: levels.Version, Levels: encodeLevels(levels),
		Keep: table.cfg.keep(), Forget: table.silent(h.Now, h.Reports),
	}, levels
}

// nextTable returns a table that continues from the last levels. If they are from the same epoch,
// it continues their numbers, because otherwise tasks would take new levels for old ones. This
// happens after an Update, and if this task has crashed and leads again under its name before its
// lease has ended.
func (f *Fleet) nextTable(epoch uint64) *Table {
	if f.word == nil {
		return newTable(f.cfg, nil)
	}
	t := newTable(f.cfg, f.word.Levels)
	if f.word.Epoch == epoch {
		t.seq = f.word.Seq
	}
	if f.table != nil && f.epoch == epoch {
		t.seq = max(t.seq, f.table.seq) // the last ones may not have been published
	}
	return t
}

// levels returns the last levels, or nil.
func (f *Fleet) levels() *Levels {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.word == nil {
		return nil
	}
	return f.word.Levels
}

// take stores levels if they are newer than the last ones. Levels of a lower epoch are from a
// leader that was replaced, or from a board that has lost its last writes. The caller holds f.mu.
func (f *Fleet) take(now time.Time, l *Levels) {
	if l.Epoch < f.fence {
		return
	}
	if w := f.word; w != nil && l.Epoch == w.Epoch && l.Seq <= w.Seq {
		return
	}
	f.raise(now, l.Epoch)
	f.word = &word{Levels: l, heard: now}
	for _, e := range f.order {
		e.fresh = e.wants
	}
}

// raise records an epoch.
func (f *Fleet) raise(now time.Time, epoch uint64) {
	if epoch > f.fence {
		f.fence, f.raised = epoch, now
	}
}

// Stats is the state of a Fleet. Counts are since it was made.
type Stats struct {
	// SyncsTotal counts round trips, ErrorsTotal those that failed, and FencedTotal levels that
	// were published too late.
	SyncsTotal, ErrorsTotal, FencedTotal uint64
	Leader                               bool
	// Epoch, Tasks and Age are those of the last levels: the epoch of their leader, the number of
	// tasks that it knew, and the time since they came. Without levels they are 0, 0 and negative.
	Epoch uint64
	Tasks int
	Age   time.Duration
	// Grace is the time until this task grants limit/Tasks if no levels come; 0 if it does so now.
	Grace       time.Duration
	Customers   int // in the last report: all that are not quiet
	ReportBytes int
	// ConfigConflict means that the limits of this task and the leader, or of two tasks, differ.
	ConfigConflict bool
}

// Stats returns the state of f at the time now.
func (f *Fleet) Stats(now time.Time) Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.stats
	s.Age = -1
	if f.word != nil {
		s.Epoch, s.Tasks, s.Age = f.word.Epoch, f.word.Tasks, now.Sub(f.word.heard)
		s.Grace = max(0, f.cfg.Grace-max(0, s.Age))
		s.ConfigConflict = s.ConfigConflict || f.word.config != f.cfg.hash
	}
	return s
}

// Level returns the level of a customer, and whether the last levels have one. They have none for a
// customer whose demand is below half of its limit.
func (f *Fleet) Level(customer string) (Level, bool) {
	l := f.levels()
	if l == nil {
		return Level{}, false
	}
	return l.Customer(customer)
}
