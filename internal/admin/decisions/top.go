package decisions

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin/accounts"
	"github.com/seed90641741/spillway/internal/frequent"
)

// turnover is how long one table of a window counts.
const turnover = 5 * time.Minute

// The tag of a count is the reason, the class and the mode.
const (
	modes = 2
	tags  = accounts.Reasons * spillway.Criticalities * modes
	_     = uint8(tags - 1) // it fits
)

func tagOf(reason accounts.Reason, c spillway.Criticality, mode spillway.Mode) uint8 {
	tag := int(reason)*spillway.Criticalities + c.Index()
	if mode != spillway.ModeEnforce {
		tag += tags / modes
	}
	return uint8(tag)
}

// A window counts the most frequent keys of the last 5 to 10 minutes.
type window struct {
	mu       sync.Mutex
	began    time.Time
	now, was *frequent.Table
}

func (w *window) turn(now time.Time) (current, former *frequent.Table) {
	w.mu.Lock()
	defer w.mu.Unlock()
	age := now.Sub(w.began)
	if w.now == nil || age >= turnover || age < -turnover {
		w.was = w.now
		if age >= 2*turnover {
			w.was = nil
		}
		w.now = frequent.New()
		w.began = now
	}
	return w.now, w.was
}

func (w *window) add(now time.Time, key string, tag uint8) {
	current, _ := w.turn(now)
	current.Add(key, tag)
}

// A Top is the list of the keys with most rejections of the last 5 to 10 minutes.
type Top struct {
	Rows []Row `json:"rows"` // the most frequent first
	// Others are the rejections that are in no row.
	Others uint64 `json:"others"`
	// Error is the error bound: 99 of 100 counts are at most this much too low. No count is too high.
	Error uint64 `json:"error"`
}

// A Row counts the rejections of one key for one reason and class.
type Row struct {
	Name        string `json:"name"` // of customers empty: those without a customer
	Reason      string `json:"reason"`
	Criticality string `json:"class"`
	Mode        string `json:"mode"`
	Count       uint64 `json:"count"`
}

func (w *window) top(now time.Time, most int) (t Top) {
	current, former := w.turn(now)
	counts := make(map[Row]uint64)
	for _, table := range []*frequent.Table{current, former} {
		if table == nil {
			continue
		}
		all, others := table.Read(frequent.MaxEntries)
		for _, c := range all {
			counts[rowOf(c)] += c.Count
		}
		t.Others += others
		t.Error += table.Error()
	}
	t.Rows = make([]Row, 0, len(counts))
	for r, n := range counts {
		r.Count = n
		t.Rows = append(t.Rows, r)
	}
	slices.SortFunc(t.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Reason, b.Reason),
			cmp.Compare(a.Criticality, b.Criticality), cmp.Compare(a.Mode, b.Mode))
	})
	for _, r := range t.Rows[min(most, len(t.Rows)):] {
		t.Others += r.Count
	}
	t.Rows = t.Rows[:min(most, len(t.Rows))]
	return t
}

func rowOf(c frequent.Count) Row {
	tag, mode := int(c.Tag), spillway.ModeEnforce
	if tag >= tags/modes {
		tag, mode = tag-tags/modes, spillway.ModeObserve
	}
	class := spillway.Criticality(tag%spillway.Criticalities) + spillway.Sheddable
	reason := accounts.Reason(tag / spillway.Criticalities)
	return Row{Name: Clean(c.Key), Reason: reason.String(), Criticality: class.String(), Mode: mode.String()}
}

// A Rejected counts the rejections of the customers with most of them, since the start.
type Rejected struct {
	Rows   map[Row]uint64 // without their Count
	Others uint64         // rejections that are in no row
}

// leastOfAll: a row has at least one in so many of all rejections, names that clients invent for each request get none.
const leastOfAll = 100

// Rejected returns the rejections since the start. No number falls as long as its customer has a row; a customer that
// gets one starts at zero, see [frequent.Rows].
func (l *Log) Rejected() Rejected {
	rows, others := l.rejected.Read()
	r := Rejected{Rows: make(map[Row]uint64, len(rows)), Others: others}
	for _, c := range rows {
		r.Rows[rowOf(c)] += c.Count
	}
	return r
}
