package shed

import (
	"math/bits"
	"time"
)

const (
	octaves  = 28 // from a microsecond to four minutes
	quarters = 4  // of an octave
	lowest   = 10 // bits of what is not told apart: a microsecond
)

// A median counts times to find the middle one, to a quarter of an octave. A mean is
// moved by the few that are long; the middle one is not.
type median struct {
	counts [octaves * quarters]uint32
	n      uint32
}

func (m *median) add(d time.Duration) {
	n := max(uint64(max(d, 0)), 1<<lowest)
	e := bits.Len64(n) - 1
	i := (e-lowest)*quarters + int(n>>(e-2)&(quarters-1))
	m.counts[min(i, len(m.counts)-1)]++
	m.n++
}

// seconds returns the middle one, 0 of none.
func (m *median) seconds() float64 { return m.nth(2) }

// quick returns the one that a tenth do not exceed, 0 of none.
func (m *median) quick() float64 { return m.nth(10) }

// nth returns the one that an n-th part do not exceed.
func (m *median) nth(part uint32) float64 {
	seen := uint32(0)
	for i, n := range m.counts {
		if seen += n; n > 0 && part*seen >= m.n {
			least := time.Duration(quarters+i%quarters) << (i/quarters + lowest - 2)
			return least.Seconds()
		}
	}
	return 0
}
