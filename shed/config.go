package shed

import (
	"math/rand/v2"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/invalid"
	"github.com/seed90641741/spillway/internal/pace"
)

// Config configures a [Shedder]. The zero Config is ready for use.
type Config struct {
	// MaxWait is the maximum time that a request waits for a processor, and for a limit if
	// the request has no deadline. With a deadline a request waits for a processor no longer
	// than leaves time to serve it, and for a limit until then. While there is no
	// sign of an overload of the processors, a request may wait for them for 1 s. MaxWait counts when
	// requests had to wait while others were let in: at once for a request with a deadline, and
	// after 100 ms for one without. A longer MaxWait makes some rejections later. Zero means 60 ms;
	// it must be 1 ms to 10 s.
	MaxWait time.Duration

	// Thresholds are the utilizations from which each class begins to be rejected; index them with
	// [spillway.Criticality.Index]. All zero means 0.80, 0.87, 0.95 and 1 ([DefaultThresholds]).
	// They must ascend by at least 0.05, the span over which a class goes from served to rejected.
	Thresholds [spillway.Criticalities]float64

	// Limit is the limit on requests at work, usually a concurrency.Limiter. Requests that it
	// does not admit wait in the Shedder. Nil means no limit. Without one, deadlines
	// are not compared with response times, requests do not run while other goroutines keep
	// all processors busy, and tickets are empty while no caller is counted.
	Limit Limit

	// Policy is the name under which rejections are reported, and Advice what they advise
	// in addition. Empty means "shed", and no further advice. Update changes neither.
	Policy, Advice string

	// Rand returns a number in [0, 1), is safe for concurrent use and does not call
	// the Shedder. Nil means [rand.Float64].
	Rand func() float64
}

// A Limit says how many requests may be at work. It is safe for concurrent use and does not call
// the Shedder. The one implementation is concurrency.Limiter.
type Limit interface {
	// These methods settle, suspend and resume the Tickets that Enter and Take return.
	spillway.Suspender
	// Ask reports whether one more request of a key may start at the time now, and what is known of
	// the limit that decides. The Scope in the result numbers that limit. The Shedder makes a waiting
	// queue for each Scope and keeps it, so a Scope must be a small number.
	Ask(now time.Time, key string) pace.Pace
	// Enter admits a call. The Shedder returns the Ticket to its caller.
	Enter(now time.Time, call spillway.Call) spillway.Ticket
	// Take admits a call of a key and a class if no limit is at work for it, and its deadline, if
	// not zero, is farther away than the fastest recent response. It reports whether it did.
	Take(now time.Time, key string, class spillway.Criticality, deadline time.Time) (spillway.Ticket, bool)
	// Working returns the number of requests at work, and of those in flight for so long
	// that they do not count.
	Working() (working, parked int)
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
		return c, invalid.Field("shed", "MaxWait", c.MaxWait, "1ms to 10s")
	}
	return c, checkThresholds(c.Thresholds)
}

// State is what the process is doing at the time of a decision.
type State struct {
	// Runnable is the number of goroutines that are ready and not running, without the goroutines
	// of the request itself.
	Runnable int
	// Processors is the maximum number that run at once: GOMAXPROCS. Below 1 counts as 1.
	Processors int
	// CPU is the share of the processors' time recently in use. Zero means unknown.
	CPU float64
	// Utilization is the highest of the other measures, such as memory, as a share of the
	// target. Zero means no other measure.
	Utilization float64
}

func (s State) processors() int { return max(s.Processors, 1) }

// Verdict is the decision on a request.
type Verdict uint8

// The verdicts. The zero Verdict is not valid.
const (
	Run      Verdict = iota + 1 // now
	Wait                        // in a waiting queue
	Rejected                    // rejected
)

// A Decision is the answer to an arrival.
type Decision struct {
	Verdict Verdict
	// Ticket is set for a request that is to Run. It must be settled exactly once.
	Ticket spillway.Ticket
	// Behind is true for a request that is to Run, but probably has to wait in the handler: its
	// limit is saturated, and recent requests there waited for a slot of the backend, such as a
	// pool, for longer than 5 ms plus a quarter of their latency. The answer can then say that
	// another task may be less busy.
	Behind bool
	// MaxWait is the maximum time for which the request may wait, if the Verdict is Wait.
	MaxWait time.Duration
	// Evicted, if not nil, is a waiter that this request has replaced. It is rejected with
	// its Err, and the caller must answer it.
	Evicted *Waiter
	// Err is set for a request that is Rejected: a *[spillway.RejectedError].
	Err error
}
