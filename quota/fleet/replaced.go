package fleet

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// forgetGone forgets tasks that have no report any more, because they have left. Those whose report the board has
// lost will report again, or count as silent.
func (t *Table) forgetGone(since time.Duration) {
	maps.DeleteFunc(t.tasks, func(_ string, m *member) bool {
		lost := m.at < since && t.last-m.at <= t.cfg.silence()
		return m.round != t.round && !lost
	})
}

// forgetReplaced forgets silent tasks, the longest silent first, while more tasks count than usually
// report. A task that crashes and comes back under another name is one task and not two. Otherwise
// tasks that crash again and again would hold the share of each of their names until Grace.
func (t *Table) forgetReplaced(dt float64) {
	t.replaced = nil
	var silent []string
	for name, m := range t.tasks {
		if t.last-m.at > late*t.cfg.Interval {
			silent = append(silent, name)
		}
	}
	if t.prior == nil && (t.learning || t.last == t.began) { // nothing says how many there were
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

// adjust follows how many tasks report. More count after about a second, because a task that has just
// crashed still counts together with the one that replaces it. Fewer count after Grace, because until then
// the others may be cut off.
func (t *Table) adjust(reporting, dt float64) {
	switch {
	case reporting >= t.usual-0.5:
		t.usual += max(0, reporting-t.usual) * min(dt, 1)
		t.enough = t.last
	case t.last-t.enough > t.cfg.silence():
		t.usual = reporting
	}
}
