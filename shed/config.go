package shed

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seed90641741/spillway"
)

// Config configures a [Shedder]. The zero Config is ready for use.
type Config struct {
	// MaxWait is the longest that a request waits in the room; one with a
	// deadline waits for less if that leaves too little time to serve it. A
	// longer wait rides out longer spikes and makes some refusals come later. Zero
	// means 60 ms; it must be 1 ms to 10 s.
	MaxWait time.Duration

	// Thresholds are the utilizations from which each class begins to be refused;
	// index them with [spillway.Criticality.Index]. All zero means
	// [DefaultThresholds]. They must ascend by at least 0.05, the span over which
	// a class goes from served to refused.
	Thresholds [spillway.Criticalities]float64

	// Rand returns a number in [0, 1), is safe for concurrent use and does not call
	// the Shedder. Nil means [rand.Float64].
	Rand func() float64
}

func (c Config) withDefaults() (Config, error) {
	if c.MaxWait == 0 {
		c.MaxWait = 60 * time.Millisecond
	}
	if c.Thresholds == [spillway.Criticalities]float64{} {
		c.Thresholds = DefaultThresholds
	}
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	if c.MaxWait < time.Millisecond || c.MaxWait > 10*time.Second {
		return c, fmt.Errorf("shed: MaxWait is %v, must be 1ms to 10s", c.MaxWait)
	}
	return c, checkThresholds(c.Thresholds)
}

// State is what the process is doing at the time of a decision.
type State struct {
	// Runnable is how many goroutines are ready to run and do not, without those
	// that the request itself has brought along.
	Runnable int
	// Processors is how many may run at once: GOMAXPROCS. Below 1 counts as 1.
	Processors int
	// CPU is the share of the processors' time that was used lately. Where it is
	// high, requests in flight wait for a processor rather than for one another.
	// Zero where it is not known.
	CPU float64
	// Utilization is how busy the process is by other measures, as a share of
	// what it should be. Zero means that there is no other measure.
	Utilization float64
}

func (s State) processors() int { return max(s.Processors, 1) }

// Verdict is what is to become of a request.
type Verdict uint8

// The verdicts. The zero Verdict is none.
const (
	Run     Verdict = iota + 1 // now
	Wait                       // in the room
	Refused                    // for good
)

// A Decision is the answer to an arrival.
type Decision struct {
	Verdict Verdict
	// Ticket is what a request that is to Run holds. It must be settled exactly
	// once.
	Ticket spillway.Ticket
	// MaxWait is how long a request that is to Wait may do so.
	MaxWait time.Duration
	// Evicted, if not nil, is a waiter that had to make place for this request:
	// it is refused with its Err, and must be told.
	Evicted *Waiter
	// Err is why a request was Refused: a *[spillway.RejectedError].
	Err error
}
