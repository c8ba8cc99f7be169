package idle

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// slot counts how often it is suspended now.
type slot struct{ suspended, changes atomic.Int32 }

func (p *slot) Suspend(time.Time) { p.suspended.Add(1); p.changes.Add(1) }
func (p *slot) Resume(time.Time)  { p.suspended.Add(-1); p.changes.Add(1) }

// A request is suspended while its handler is quiet after it has sent something, and never after its end.
func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p slot
		expect := func(after time.Duration, suspended int32) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if got := p.suspended.Load(); got != suspended {
				t.Errorf("suspended %d times, want %d", got, suspended)
			}
		}
		var s Stream
		s.Wake()
		expect(2*After, 0)
		s.Rest(&p)
		expect(After-1, 0)
		expect(1, 1)
		s.Wake() // to send
		expect(2*After, 0)
		s.Rest(&p)
		expect(After-1, 0)
		s.Rest(&p) // once more in time
		expect(After-1, 0)
		s.Wake()
		expect(2*After, 0)
		s.Rest(&p)
		expect(After, 1)
		s.Rest(&p) // without Wake: it has sent something meanwhile
		expect(After, 1)
		s.End()
		expect(0, 0)
		changes := p.changes.Load()
		s.Rest(&p)
		s.Wake()
		s.End()
		if expect(2*After, 0); p.changes.Load() != changes {
			t.Error("changed after its end")
		}
		new(Stream).End()
	})
}
