package fleet

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/seed90641741/spillway"
)

// A Table computes levels from the reports of all tasks. A [Fleet] has one while it leads; a quota
// service can use one directly. All times are of one clock, that of the board. A Table must not be
// used concurrently. Make one with [NewTable].
type Table struct {
	cfg       *settings
	clock     time.Time     // time of the leading task, for Config.Above
	began     time.Duration // when it began to learn
	last      time.Duration
	started   bool
	learning  bool
	seq       uint64
	round     uint64
	prior     map[string]Level // levels of the last leader, while this one learns
	expected  int              // number of tasks that the last leader knew
	live      int              // number of tasks in the last round
	usual     float64          // number of tasks that report, averaged over a second
	enough    time.Duration    // when about so many last reported
	replaced  []string         // silent tasks that others have replaced
	tasks     map[string]*member
	customers map[string]*account
	listed    []*account // sorted by name
	unlisted  []*account
	total     []*account // of all unlisted customers together, if reported
	sorted    bool       // listed, unlisted and total are complete
}

// NewTable returns a Table that knows no task. It continues from the levels of the last leader,
// which may be nil. An error names the field of c that is out of range.
func NewTable(c Config, prior *Levels) (*Table, error) {
	cfg, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	return newTable(cfg, prior), nil
}

func newTable(cfg *settings, prior *Levels) *Table {
	t := &Table{cfg: cfg, live: cfg.Tasks, tasks: make(map[string]*member), customers: make(map[string]*account)}
	if prior != nil {
		t.prior, t.expected, t.live, t.usual = prior.customers, prior.Tasks, prior.Tasks, float64(prior.Tasks)
	}
	return t
}

// Levels returns the levels at a time, given the reports of all tasks. It returns false while the
// Table learns; the tasks should keep their levels until then. It ignores invalid reports. The
// caller must set Epoch in the result.
func (t *Table) Levels(now time.Duration, reports []Stamped) (*Levels, bool) {
	return t.levels(now, 0, reports)
}

// levels does the same as Levels, for a board that has kept all reports since a time.
func (t *Table) levels(now, since time.Duration, reports []Stamped) (*Levels, bool) {
	dt := t.advance(now)
	t.receive(reports)
	t.forgetGone(since)
	t.forgetReplaced(dt)
	t.count(now, dt)
	weight, unlisted := t.divide()
	if t.cfg.Above != nil {
		t.lease(dt)
	}
	live := max(len(t.tasks), 1)
	t.live = live
	t.learning = now-t.began < 2*t.cfg.Interval || now-t.began < t.cfg.Hold && live < t.expected
	t.seq++
	l := &Levels{
		Version: Version{Seq: t.seq}, Tasks: live, config: t.cfg.hash, weight: weight, unlisted: unlisted,
		customers: make(map[string]Level, len(t.customers)),
	}
	for _, all := range [][]*account{t.listed, t.unlisted, t.total} {
		for _, a := range all {
			a.settle(t, dt)
			switch {
			case math.IsInf(a.rate, 1):
			case a.isQuiet(t.cfg, live):
				a.level = t.cfg.quiet(a.rate, live)
			default:
				a.level = a.share(t.cfg, live)
				l.customers[a.name] = a.level
			}
		}
	}
	if !t.learning {
		t.prior = nil
	}
	return l, !t.learning
}

// silent returns the tasks that no longer count, because they have been silent for too long or were
// replaced.
func (t *Table) silent(now time.Duration, reports []Stamped) (names []string) {
	names = t.replaced
	for _, r := range reports {
		if now-r.At > t.cfg.silence() {
			names = append(names, r.Task)
		}
	}
	return names
}

// conflict reports whether a task has other limits than the leader.
func (t *Table) conflict() bool {
	for _, m := range t.tasks {
		if m.config != t.cfg.hash {
			return true
		}
	}
	return false
}

// advance returns the time since the last levels, in seconds. After a pause, or after the clock was
// set, the Table learns again.
func (t *Table) advance(now time.Duration) (dt float64) {
	if gap := now - t.last; !t.started || gap < 0 || gap > t.cfg.Hold {
		if t.started {
			t.expected = max(t.expected, t.live)
		}
		t.started, t.began, t.last, t.enough = true, now, now, now
	}
	dt = (now - t.last).Seconds()
	t.last = now
	return dt
}

// receive reads new reports.
func (t *Table) receive(reports []Stamped) {
	t.round++
	for _, r := range reports {
		age := t.last - r.At
		if age > t.cfg.silence() || age < -t.cfg.Hold || len(r.Task) > maxName {
			continue
		}
		m := t.tasks[r.Task]
		switch {
		case m != nil:
		case len(t.tasks) >= maxTasks:
			continue
		default:
			m = &member{rows: make(map[string]*row)}
		}
		if m.at != r.At || m.seq == 0 {
			if !m.receive(t, r) {
				continue
			}
			t.tasks[r.Task] = m
		}
		m.round = t.round
	}
}

// count adds up over all tasks what each customer needs and has used.
func (t *Table) count(now time.Duration, dt float64) {
	for _, a := range t.customers {
		a.reset()
	}
	names := slices.Sorted(maps.Keys(t.tasks)) // sums must not depend on the order of a map
	for _, name := range names {
		m := t.tasks[name]
		for _, r := range m.order {
			r.account.round = t.round
			r.count(t.cfg, now-m.at, dt, len(t.tasks))
		}
	}
	maps.DeleteFunc(t.customers, func(_ string, a *account) bool {
		gone := a.round != t.round && a.debt == 0
		t.sorted = t.sorted && !gone
		return gone
	})
	if !t.sorted {
		t.sort()
	}
}

// sort makes the lists of accounts, sorted by name.
func (t *Table) sort() {
	t.listed, t.unlisted, t.total, t.sorted = t.listed[:0], t.unlisted[:0], t.total[:0], true
	for _, name := range slices.Sorted(maps.Keys(t.customers)) {
		switch a := t.customers[name]; {
		case name == allUnlisted:
			t.total = append(t.total, a)
		case a.listed:
			t.listed = append(t.listed, a)
		default:
			t.unlisted = append(t.unlisted, a)
		}
	}
}

// account returns the account of a customer. If there are too many, it returns the account "", for
// all others.
func (t *Table) account(name string) *account {
	if a := t.customers[name]; a != nil {
		return a
	}
	limit, listed := t.cfg.limit(name)
	if !listed && len(t.customers) >= maxEntries-1 && name != "" {
		return t.account("")
	}
	bounds, _ := t.cfg.bounds(name)
	a := &account{name: name, limit: limit, listed: listed, own: bounds.own, level: Level{Marginal: -1}}
	if before, ok := t.prior[name]; ok {
		a.level, a.debt = before, before.Debt
	}
	t.customers[name], t.sorted = a, false
	return a
}

// A member is a task, with its last report.
type member struct {
	report
	at    time.Duration
	round uint64
	rows  map[string]*row
	order []*row // in the order of the report
}

// receive reads a report, and returns false if it is invalid. A report that is not newer than the
// last one shows only that the task is alive.
func (m *member) receive(t *Table, s Stamped) bool {
	head, err := parseReport(s.Report, func([]byte, *usage) {})
	if err != nil {
		return false
	}
	// A report from before this Table began to learn does not show what was used since.
	known := m.seq > 0 && m.incarnation == head.incarnation && m.at >= t.began-late*t.cfg.Interval
	if known && head.seq <= m.seq {
		m.at = s.At
		return true
	}
	if !known {
		m.rows, m.order, m.seq = make(map[string]*row), nil, 0
	}
	last, i := m.order, 0
	m.order = make([]*row, 0, len(last))
	_, _ = parseReport(s.Report, func(name []byte, u *usage) {
		var r *row
		if i < len(last) && last[i].name == string(name) {
			r = last[i]
		} else {
			r = m.rows[string(name)]
		}
		i++
		if r != nil && r.seq == head.seq {
			return // the report names it twice
		}
		m.order = append(m.order, m.update(t, r, name, u, &head))
	})
	for _, r := range last {
		if r.seq != head.seq {
			delete(m.rows, r.name)
		}
	}
	m.report, m.at = head, s.At
	return true
}

// update processes what a report says about one customer. If the customer entered the reports after
// the last one that is known, its use began at zero. Otherwise a new leader counts from this report
// on.
func (m *member) update(t *Table, r *row, name []byte, u *usage, head *report) *row {
	began := head.seq - min(u.age, head.seq-1)
	if r == nil || began > m.seq && m.seq > 0 {
		if r == nil {
			r = &row{name: string(name), account: t.account(string(name))}
			m.rows[r.name] = r
		}
		r.used, r.assumed = u.used, 0
		if began > m.seq && (m.seq > 0 || u.age == 0) {
			r.used = 0
		}
	}
	r.add(t.cfg, u.used-r.used-r.assumed)
	r.used, r.assumed, r.wants, r.seq = u.used, 0, u.wants, head.seq
	r.granted, _ = r.account.level.grant(&r.wants, t.live)
	return r
}

// A row is what one task needs and uses of one customer's quota.
type row struct {
	name    string
	account *account
	seq     uint64 // number of the report
	wants   [spillway.Criticalities]float64
	// granted is the rate by the levels that the task received with its last report.
	granted float64
	used    float64 // as reported
	fresh   float64 // part of used that the account has not counted yet
	assumed float64 // counted by the account since, without a report
	counted float64 // counted by the account in all: the task can give back this
}

// add records what a task has used since its last report. This is negative if calls that were
// charged did not start, or cost less. A task cannot give back more than was counted for it, nor
// more than the highest debt. Otherwise a task that reports negative use would let the others use
// more than the limit.
func (r *row) add(s *settings, used float64) {
	used = max(used, -r.counted)
	r.fresh += used
	r.counted = min(r.counted+used, float64(2*s.window*min(r.account.limit.Rate, s.maximum)))
}

// count adds a row, from a report of that age, to its account. A late task has not received new
// levels either: it uses what it was granted, which decays.
func (r *row) count(s *settings, age time.Duration, dt float64, tasks int) {
	a, sum := r.account, 0.
	a.used += r.fresh
	r.fresh = 0
	for class, w := range r.wants {
		if sum += w; w > 0 && age <= late*s.Interval {
			a.parts[class] = append(a.parts[class], ample(w))
			a.offered[class] += w
		}
	}
	if age <= late*s.Interval {
		a.wants += sum
		return
	}
	equal := a.level.Rate / float64(max(tasks, s.Tasks))
	uses := min(sum, decayed(s, r.granted, equal, age))
	r.assumed += float64(uses * dt)
	r.counted += float64(uses * dt)
	a.used += float64(uses * dt)
	if age <= s.Grace {
		a.reserved += uses
	}
}

// silence returns how long a silent task counts. After Grace nothing is reserved for it, but the
// others get its share only with their next levels. Until then its share counts as used; otherwise
// the shared bucket would save it up, and grant it in addition later.
func (s *settings) silence() time.Duration { return s.Grace + late*s.Interval }

// decayed returns what is left of a share after a time without new levels: the whole share until
// Hold, and the equal share from Grace on.
func decayed(s *settings, share, equal float64, age time.Duration) float64 {
	left := min(max(float64(s.Grace-age)/float64(s.Grace-s.Hold), 0), 1)
	return float64(share*left) + float64(equal*(1-left))
}
