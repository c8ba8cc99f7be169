package fleet

import (
	"context"
	"errors"
	"time"
)

// A Board stores the reports of the tasks of a service, and the levels. It stores bytes, elects a
// leader, and has a clock. It must be safe for concurrent use. Package boardtest checks an
// implementation.
//
// A Board that fails, hangs, or returns invalid data stops no task: see the package comment,
// "Without new levels".
type Board interface {
	// Sync stores a report and returns what is new, in one round trip. The task becomes leader,
	// with an epoch above s.Epoch and all earlier ones, if there is no leader, if the leader's
	// lease has ended, or if s.Epoch is above the Board's epoch. Sync of the leader extends its
	// lease. A lease that would end much later than a lease can last has ended, too: the clock was
	// set back.
	Sync(ctx context.Context, s Said) (Heard, error)
	// Publish stores levels for all tasks. It returns [ErrFenced] if the task does not lead in the
	// epoch of the levels.
	Publish(ctx context.Context, p Publication) error
	// Leave removes the report of a task. If the task leads, Leave ends its lease.
	Leave(ctx context.Context, task string) error
}

// ErrFenced is the error of [Board.Publish] for a task that is no longer the leader.
var ErrFenced = errors.New("fleet: another task leads")

// Said is what a task sends to the board.
type Said struct {
	Task   string
	Report []byte
	Epoch  uint64        // highest epoch that the task has seen
	Has    Version       // version of the task's levels; zero if it has none
	Lease  time.Duration // length of the leader's lease
	Keep   time.Duration // how long the board keeps data that does not change
}

// A Version identifies levels: by the epoch of the leader that published them, and by a number that
// rises within the epoch.
type Version struct{ Epoch, Seq uint64 }

// Heard is what a task receives from the board.
type Heard struct {
	Now     time.Duration // time of the board's clock, since any fixed time
	Epoch   uint64        // epoch of the leader
	Leader  bool          // the task leads
	Task    string        // name of the leader; "" if the board does not return it
	Levels  []byte        // nil if the task has them already, or none exist
	Reports []Stamped     // of all tasks, if the task leads
	// Since is the time, by the board's clock, from which on the board has kept all reports. If an
	// earlier report is missing, the board has lost it, and its task has not left. Zero means that
	// the board never loses only its reports.
	Since time.Duration
}

// Stamped is a report with the time at which the board received it.
type Stamped struct {
	Task   string
	At     time.Duration // by the board's clock
	Report []byte
}

// Publication is what a leader sends to the board.
type Publication struct {
	Task    string
	Version Version
	Levels  []byte
	Keep    time.Duration // how long the board keeps the levels
	Forget  []string      // tasks whose reports the board must remove
}
