package layers

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway/internal/thorough"
)

// TestSomeAreWeak has other tasks in trouble than one of four that is weak: nearly all calls
// are served for few attempts more, while the others have the capacity.
func TestSomeAreWeak(t *testing.T) {
	for _, row := range []struct {
		name  string
		tasks int
		load  float64 // of what all tasks can do
		bare  int     // tasks without protection
		weak  func(all []*task)
	}{
		{"two of four are weak", 4, 0.5, 0, func(all []*task) { all[0].weaken(); all[1].weaken() }},
		{"one of two is weak", 2, 0.5, 0, func(all []*task) { all[0].weaken() }},
		{"one is four times as slow, and rejects nothing", 4, 0.7, 1, func(all []*task) { all[0].slower.Store(4) }},
		{"one is slow for a while", 4, 0.7, 0, func(all []*task) {
			all[0].slower.Store(4)
			time.AfterFunc(2*time.Second, func() { all[0].slower.Store(0) })
		}},
	} {
		if row.tasks > 2 && row.bare == 0 && !thorough.Enabled() {
			continue
		}
		if row.bare > 0 && testing.Short() {
			continue // the race detector needs a minute
		}
		for name, how := range map[string]system{"gRPC round_robin": overGRPC, "HTTP behind one address": behindAddress} {
			if row.bare > 0 && name != "gRPC round_robin" {
				continue // a TCP balancer does not know which task is slow, and no task says so
			}
			t.Run(row.name+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := newNetwork(t, false)
					var all []*task
					for i := range row.tasks {
						x := newTask()
						x.bare = i < row.bare
						all = append(all, x)
					}
					var attempts atomic.Int64
					known := new(stories)
					client := how(t, n, all, known, &attempts)
					offer := func(d time.Duration) *measured {
						m, before := new(measured), attempts.Load()
						m.offer(row.load*capacity/tasks*float64(row.tasks), d, known, client.call)
						m.attempts.Store(attempts.Load() - before)
						return m
					}
					offer(2 * time.Second)
					row.weak(all)
					offer(2 * time.Second)
					m := offer(6 * time.Second)
					t.Logf("%v\nthe slowest 1 %%: %s", m, slowest(m.stories, 0.01, all[0]))
					if !m.good() {
						t.Errorf("%v%s", m, client.standing())
					}
				})
			})
		}
	}
}
