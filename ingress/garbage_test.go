package ingress

import (
	"context"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/load"
	"github.com/seed90641741/spillway/ratelimit"
)

// A process that rejects all requests for lack of memory makes so little garbage that the runtime
// would not collect it, here never. The Server has it collected once in a while, if it rejects at
// all, also where requests are rejected early.
func TestGarbageIsCollectedForLackOfMemory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 40))
	for _, row := range []struct {
		mode        spillway.Mode
		memory      float64
		collections uint32
	}{{spillway.ModeEnforce, 1e-9, 1}, {spillway.ModeEnforce, 0, 0}, {spillway.ModeObserve, 1e-9, 0}, {spillway.ModeOff, 1e-9, 0}} {
		garbage.collected = time.Time{}
		s, err := New(Config{ShedMode: row.mode, Load: load.Config{Targets: load.Targets{Memory: row.memory}}})
		if err != nil {
			t.Fatal(err)
		}
		before := forced()
		for range 1000 {
			early := s.RejectAt(context.Background(), time.Now(), &spillway.Call{}, &ratelimit.Caller{})
			if early.Rejected() != (row.collections > 0) {
				t.Fatalf("%+v: %v", row, early.Err)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if n := forced() - before; n != row.collections {
			t.Errorf("%+v: %d collections", row, n)
		}
	}
}

// forced returns how many collections the program has asked for.
func forced() uint32 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.NumForcedGC
}
