package frequent

import "sync"

// Rows reports the most frequent keys of a table as counters that do not fall. A key that gets a row starts with what it has had since the
// last [Rows.Read]: what it had before was reported in the sum of all others, and stays there. A key that loses its row leaves its count to that sum.
// It is safe for concurrent use; make one with [NewRows].
type Rows struct {
	*Table

	most int
	part uint64

	mu   sync.Mutex
	last map[id]uint64 // counts at the last Read
	from map[id]uint64 // of them, what those with a row had before
}

// An id is a key and its tag.
type id struct {
	key string
	tag uint8
}

// NewRows returns an empty table with at most so many rows. A key has a row only if it has at least one in part of all events, if
// part is not 0.
func NewRows(most int, part uint64) *Rows {
	return &Rows{Table: New(), most: most, part: part, last: map[id]uint64{}, from: map[id]uint64{}}
}

// Read returns the rows, the most frequent key first, and the events of all other keys.
func (r *Rows) Read() (rows []Count, others uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all, others := r.Table.Read(MaxEntries)
	sum := others
	for _, c := range all {
		sum += c.Count
	}
	last, from := make(map[id]uint64, len(all)), make(map[id]uint64, r.most)
	for i, c := range all {
		k := id{c.Key, c.Tag}
		last[k] = c.Count
		if i >= r.most || c.Count*r.part < sum && r.part > 0 {
			others += c.Count
			continue
		}
		from[k] = r.base(k, c.Count)
		others += from[k]
		c.Count -= from[k]
		rows = append(rows, c)
	}
	r.last, r.from = last, from
	return rows, others
}

// base returns what a key had before it got its row. A key whose count has fallen was forgotten and came back.
func (r *Rows) base(k id, count uint64) uint64 {
	last := r.last[k]
	if count < last {
		return 0
	}
	if from, ok := r.from[k]; ok {
		return from
	}
	return last
}
