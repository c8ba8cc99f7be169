// Package charging decides whether the slot of a request may serve another one.
package charging

import "sync/atomic"

// A State says whether a request can still be charged, or suspended by its handler, and whether it was. The zero State is
// that of a request that was not. It is safe for concurrent use.
type State struct{ v atomic.Int32 }

const (
	uncharged = iota
	charged   // a late charge may still find the slot
	ended
)

// Begin reports whether the request can be charged. From then on its slot must serve no
// other request.
func (s *State) Begin() bool {
	return s.v.Load() == charged || s.v.CompareAndSwap(uncharged, charged) || s.v.Load() == charged
}

// End ends charging, and reports whether there was no charge.
func (s *State) End() bool { return s.v.Swap(ended) == uncharged }
