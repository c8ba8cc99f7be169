package fleet

import (
	"context"
	"errors"
	"time"
)

// A Board is where the tasks of a service leave reports and find levels. It stores
// bytes, elects a leader, and has a clock. It must be safe for concurrent use. The
// package boardtest checks an implementation.
//
// A Board that fails, hangs, or answers with garbage stops no task: see the package
// comment, "Without a word".
type Board interface {
	// Sync stores a report and returns what is new, in one round trip. If there is no
	// leader, if its lease is over, or if s.Epoch is above its epoch, the task becomes
	// leader with an epoch above both. A leader that syncs extends its lease. One that ends
	// much later than a lease can last is over, too: the clock has stepped back.
	Sync(ctx context.Context, s Said) (Heard, error)
	// Publish stores levels for all tasks, or returns [ErrFenced] if the task does not
	// lead under this epoch.
	Publish(ctx context.Context, p Publication) error
	// Leave removes the report of a task, and ends its lease if it leads.
	Leave(ctx context.Context, task string) error
}

// ErrFenced is the error of [Board.Publish] for a task that does not lead any more.
var ErrFenced = errors.New("fleet: another task leads")

// Said is what a task brings to the board.
type Said struct {
	Task   string
	Report []byte
	Epoch  uint64        // the highest that the task has seen
	Has    Version       // of the levels that the task has; zero for none
	Lease  time.Duration // of the leader
	Keep   time.Duration // how long the board remembers what nobody changes
}

// A Version tells levels apart: the epoch of the leader that published them, and the
// number that it gave them.
type Version struct{ Epoch, Seq uint64 }

// Heard is what a task takes home.
type Heard struct {
	Now     time.Duration // of the board's clock, since any fixed time
	Epoch   uint64        // of the leader
	Leader  bool          // whether the task leads
	Task    string        // the one that leads; "" if the board does not say
	Levels  []byte        // nil if the task has them already, or there are none
	Reports []Stamped     // of all tasks; to the leader only
	// Since says how long the board has kept reports, by its clock: one of before that is missing was lost, and its
	// task has not left. Zero if the board loses no reports without what else it stores.
	Since time.Duration
}

// Stamped is a report, and when the board received it.
type Stamped struct {
	Task   string
	At     time.Duration // of the board's clock
	Report []byte
}

// Publication is what a leader brings to the board.
type Publication struct {
	Task    string
	Version Version
	Levels  []byte
	Keep    time.Duration // how long the board remembers them
	Forget  []string      // tasks that have been silent for too long
}
