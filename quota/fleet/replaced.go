package fleet

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// forgetGone forgets tasks without a report, because they have left. Tasks whose report the board
// has lost report again, or count as silent.
func (t *Table) forgetGone(since time.Duration) {
	maps.DeleteFunc(t.tasks, func(_ string, m *member) bool {
		lost := m.at < since && t.last-m.at <= t.cfg.silence()
		return m.round != t.round && !lost
	})
}

// forgetReplaced forgets silent tasks, the longest silent first, while there are more tasks than
// usually report. A task that crashes and starts again under another name is one task, not two.
// Otherwise a task that crashes again and again would hold one share for each of its names until
// Grace.
func (t *Table) forgetReplaced(dt float64) {
	t.replaced = nil
	var silent []string
	for name, m := range t.tasks {
		if t.last-m.at > late*t.cfg.Interval {
			silent = append(silent, name)
		}
	}
	if t.prior == nil && (t.learning || t.last == t.began) { // the usual number is unknown
		t.usual = float64(len(t.tasks))
		return
	}
	t.adjust(float64(len(t.tasks)-len(silent)), dt)
	excess := min(len(t.tasks)-int(t.usual+0.5), len(silent))
	if excess <= 0 {
		return
	}
	slices.SortFunc(silent, func(a, b string) int {
		return cmp.Or(cmp.Compare(t.tasks[a].at, t.tasks[b].at), cmp.Compare(a, b))
	})
	t.replaced = silent[:excess]
	for _, name := range t.replaced {
		delete(t.tasks, name)
	}
}

// adjust updates the usual number of tasks that report. It rises with a time constant of a second,
// because a task that has just crashed still counts together with its replacement. It falls after
// Grace, because until then the missing tasks may be cut off.
func (t *Table) adjust(reporting, dt float64) {
	switch {
	case reporting >= t.usual-0.5:
		t.usual += max(0, reporting-t.usual) * min(dt, 1)
		t.enough = t.last
	case t.last-t.enough > t.cfg.silence():
		t.usual = reporting
	}
}
