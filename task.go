package spillway

import (
	"context"
	"math"
	"sync/atomic"
	"time"
)

// Level orders the tasks of users within a class: calls with a higher Level are rejected
// later. All calls of one task have the same Level, in all services, so that an overload serves
// some tasks whole in place of parts of many. The zero value means that the call has no Level yet:
// a server then draws one. Otherwise it is 1 to [Levels].
//
// Sources: Zhou and others, "Overload Control for Scaling WeChat Microservices" (SoCC 2018);
// Uber's Cinnamon, which has 128 cohorts in each tier.
type Level uint8

// Levels is the highest [Level].
const Levels = 128

// Valid reports whether l is a level, and not zero.
func (l Level) Valid() bool { return l >= 1 && l <= Levels }

// LevelOf returns the level of a user, or of a trace. It is the same in all processes, and changes each
// hour: nobody is always last. Use it where requests enter the system, with an identity that was
// verified. Users differ in level, so do not use it for a name that many users share.
func LevelOf(name string, now time.Time) Level {
	h := uint64(now.Unix() / 3600)
	for i := range len(name) {
		h = mix(h ^ uint64(name[i]))
	}
	return Level(mix(h)>>57) + 1
}

// mix is the finalizer of MurmurHash3.
func mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// Progress is how many calls of a task have been served so far: within a class, calls of tasks
// with more progress go first, because less work is lost with the others. It does not exceed 255.
type Progress uint8

// Task is what the calls for one user's task share. A server begins one for each request, and its handler's
// calls belong to it. Programs that serve no requests, such as jobs, begin one with
// [WithTask]. The methods allocate nothing, are safe for concurrent use, and may be
// called on nil, which is a task without level and progress.
type Task struct {
	state atomic.Uint32 // the level, and in the lower half how many calls were served
}

const levelShift = 16

// Begin sets the level and the progress with which a task came in. Call it before the Task is shared.
func (t *Task) Begin(l Level, p Progress) {
	t.state.Store(uint32(l)<<levelShift | uint32(p))
}

// Level returns the level of the task, or zero if it has none.
func (t *Task) Level() Level {
	if t == nil {
		return 0
	}
	return Level(t.state.Load() >> levelShift)
}

// Progress returns how many calls of the task have been served.
func (t *Task) Progress() Progress {
	if t == nil {
		return 0
	}
	return Progress(min(t.state.Load()&(1<<levelShift-1), math.MaxUint8))
}

// Served counts a call of the task that was served. Clients of this module call it.
func (t *Task) Served() {
	if t != nil && t.Progress() < math.MaxUint8 {
		t.state.Add(1)
	}
}

type taskKey struct{}

// Value returns t if key is the one under which [TaskFrom] looks, and else nil. It is for contexts that hold a
// Task: their Value asks it, and needs no other context around it.
func (t *Task) Value(key any) any {
	if key == (taskKey{}) {
		return t
	}
	return nil
}

// WithTask returns a copy of ctx that carries t: calls made with ctx, and with contexts derived from it,
// belong to t.
func WithTask(ctx context.Context, t *Task) context.Context {
	return context.WithValue(ctx, taskKey{}, t)
}

// TaskFrom returns the Task that ctx carries, or nil.
func TaskFrom(ctx context.Context) *Task {
	t, _ := ctx.Value(taskKey{}).(*Task)
	return t
}
