package fleet

import (
	"context"
	"slices"
	"sync"
	"time"
)

// A Memory is a [Board] in this process. It is for tests, and for several listeners of one process
// that share quotas. It is safe for concurrent use and must not be copied. Make one with
// [NewMemory].
type Memory struct {
	now     func() time.Time
	mu      sync.Mutex
	base    time.Time
	reports map[string]Stamped
	leader  string
	epoch   uint64
	until   time.Duration
	version Version
	levels  []byte
}

// longestLease is longer than the lease of any leader. A lease that ends later was granted before
// the clock was set back, and has ended: otherwise there would be no leader for the length of the
// step.
const longestLease = time.Minute

// NewMemory returns an empty Memory. It gets the time from now, usually [time.Now].
func NewMemory(now func() time.Time) *Memory {
	return &Memory{now: now, base: now(), reports: make(map[string]Stamped)}
}

// Sync implements [Board].
func (m *Memory) Sync(ctx context.Context, s Said) (Heard, error) {
	if err := ctx.Err(); err != nil {
		return Heard{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now().Sub(m.base)
	m.reports[s.Task] = Stamped{Task: s.Task, At: now, Report: slices.Clone(s.Report)}
	left := m.until - now
	if m.leader == "" || left < 0 || left > max(s.Lease, longestLease) || m.epoch < s.Epoch {
		m.leader, m.epoch = s.Task, max(m.epoch, s.Epoch)+1
	}
	h := Heard{Now: now, Epoch: m.epoch, Leader: m.leader == s.Task, Task: m.leader}
	if m.levels != nil && m.version != s.Has {
		h.Levels = m.levels
	}
	if h.Leader {
		m.until = now + s.Lease
		for _, r := range m.reports {
			h.Reports = append(h.Reports, r)
		}
	}
	return h, nil
}

// Publish implements [Board].
func (m *Memory) Publish(ctx context.Context, p Publication) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.leader != p.Task || m.epoch != p.Version.Epoch {
		return ErrFenced
	}
	m.levels, m.version = slices.Clone(p.Levels), p.Version
	for _, task := range p.Forget {
		delete(m.reports, task)
	}
	return nil
}

// Leave implements [Board].
func (m *Memory) Leave(_ context.Context, task string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.reports, task)
	if m.leader == task {
		m.leader = ""
	}
	return nil
}

var _ Board = (*Memory)(nil)
