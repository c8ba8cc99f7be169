package spillway_test

import (
	"context"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"github.com/seed90641741/spillway"
)

// TestCallIsSmall: a Call is copied for each policy.
func TestCallIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(spillway.Call{}); size > 64 {
		t.Errorf("a Call has %d bytes, want 64 at most", size)
	}
}

func TestLevelOf(t *testing.T) {
	now := time.Unix(1e9, 0)
	var counts [spillway.Levels + 1]int
	changed := 0
	for i := range 64 * spillway.Levels {
		name := strconv.Itoa(i)
		l := spillway.LevelOf(name, now)
		if !l.Valid() {
			t.Fatalf("level %d of %s, want 1 to %d", l, name, spillway.Levels)
		}
		counts[l]++
		if l != spillway.LevelOf(name, now.Truncate(time.Hour)) {
			t.Fatalf("%s has two levels in an hour", name)
		}
		if l != spillway.LevelOf(name, now.Add(time.Hour)) {
			changed++
		}
	}
	for l, n := range counts[1:] {
		if n < 24 || n > 120 { // 64 with a standard deviation of 8
			t.Errorf("level %d is that of %d users of 64 in the mean", l+1, n)
		}
	}
	if least := 62 * spillway.Levels; changed < least {
		t.Errorf("%d users have another level an hour later, want at least %d", changed, least)
	}
}

// A holder is a context that holds a Task.
type holder struct {
	context.Context

	task *spillway.Task
}

func (h holder) Value(key any) any { return h.task.Value(key) }

func TestTask(t *testing.T) {
	var none *spillway.Task
	none.Served()
	if none.Level() != 0 || none.Progress() != 0 {
		t.Error("a nil Task has a level or progress")
	}
	var task spillway.Task
	task.Begin(7, 250)
	ctx := spillway.WithTask(context.Background(), &task)
	for range 300 {
		spillway.TaskFrom(ctx).Served()
	}
	if task.Level() != 7 || task.Progress() != 255 {
		t.Errorf("level %d, progress %d, want 7 and 255", task.Level(), task.Progress())
	}
	if got := spillway.TaskFrom(holder{context.Background(), &task}); got != &task {
		t.Error("a context that asks its Task for the value has none")
	}
	if task.Value("another key") != nil {
		t.Error("a Task is the value of any key")
	}
	if spillway.TaskFrom(context.Background()) != nil {
		t.Error("a context without a task has one")
	}
	if n := testing.AllocsPerRun(100, func() { spillway.TaskFrom(ctx).Served() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
