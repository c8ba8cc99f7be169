package throttle

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/invalid"
	"github.com/seed90641741/spillway/internal/rejection"
)

// Config configures a [Throttle]. The zero Config is ready for use.
type Config struct {
	// K is the number of calls that are sent for each accepted one before any is rejected here. A
	// higher K detects free capacity sooner, and costs the backend more work for rejections. Zero
	// means 2, as the SRE book prefers; it must be above 1 and at most 100.
	K float64

	// Window is the time constant of the limit while the capacity of the backend stays the
	// same, and the time for which outcomes count. A longer one divides the backend more
	// evenly among its clients, and settles later. Zero means 30 s ([DefaultWindow]); it must
	// be 1 s to 1 h.
	Window time.Duration

	// ProbeInterval is the interval of probes to a backend that accepts nothing. It is also the
	// time for which accepts must last to count as a recovery, and for which rejections must last
	// to count as a smaller capacity. A shorter one reacts sooner and sends more probes to a dead
	// backend. Zero means 1 s; it must be 1 ms to Window.
	ProbeInterval time.Duration

	// MinRequests is the number of calls, above K times the accepted ones, that must be sent
	// before any is rejected. Zero means 10, negative means none.
	MinRequests int

	// OnStateChange, if not nil, is called when the [State] of a criticality changes. It is
	// called on the path of a call, so it must be quick. Invocations for one criticality do
	// not overlap, and the last one has the current state. Changes that are undone during an
	// invocation are not reported. It must not call methods of the throttle that calls it.
	// Time alone changes nothing: a state ends with the next call or Stats.
	OnStateChange func(StateChange)

	// Rand returns a number in [0, 1) and is safe for concurrent use. Nil means
	// [rand.Float64].
	Rand func() float64
}

// DefaultWindow is the default of Config.Window.
const DefaultWindow = 30 * time.Second

// withDefaults returns c with its zero fields filled, or an error that names
// the first bad field.
func (c Config) withDefaults() (Config, error) {
	if c.K == 0 {
		c.K = 2
	}
	if c.Window == 0 {
		c.Window = DefaultWindow
	}
	if c.ProbeInterval == 0 {
		c.ProbeInterval = min(time.Second, c.Window)
	}
	switch {
	case c.MinRequests == 0:
		c.MinRequests = 10
	case c.MinRequests < 0:
		c.MinRequests = 0
	}
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	switch {
	case !(c.K > 1 && c.K <= 100):
		return c, invalid.Field("throttle", "K", c.K, "above 1 and at most 100")
	case c.Window < time.Second || c.Window > time.Hour:
		return c, invalid.Field("throttle", "Window", c.Window, "1s to 1h")
	case c.ProbeInterval < time.Millisecond || c.ProbeInterval > c.Window:
		return c, invalid.Field("throttle", "ProbeInterval", c.ProbeInterval, "1ms to Window (%v)", c.Window)
	}
	return c, nil
}

// quarter is a quarter of ProbeInterval: rule 1 and the call rate measure over that time.
func (c *Config) quarter() time.Duration { return c.ProbeInterval / 4 }

// A Throttle is a [spillway.Gate] for one backend. Use one for all calls of a
// process to that backend. It is safe for concurrent use; make one with [New].
type Throttle struct {
	rand    atomic.Pointer[func() float64]
	clock   clock
	update  sync.Mutex // one Update at a time
	classes classes
}

// New returns a Throttle without any history, or an error that names the field of c that is
// out of range.
func New(c Config) (*Throttle, error) {
	t := new(Throttle)
	if err := t.Update(c); err != nil {
		return nil, err
	}
	return t, nil
}

// Update changes the configuration of a throttle in use, or returns an error that names the
// field that is out of range and changes nothing. Statistics are kept, unless Window changes.
func (t *Throttle) Update(c Config) error {
	c, err := c.withDefaults()
	if err != nil {
		return err
	}
	t.update.Lock()
	defer t.update.Unlock()
	t.rand.Store(&c.Rand)
	t.classes.configure(c, nil)
	return nil
}

// Admit lets the call through, or rejects it with a probability such that no more calls are sent
// than the limit of their criticality. An admitted call must be settled exactly once. Its outcome
// says whether the backend accepted it ([spillway.Outcome.Accepted]); it does not count if it says
// nothing about the backend ([spillway.Outcome.Informs]). Admit implements [spillway.Gate] and
// allocates nothing.
func (t *Throttle) Admit(now time.Time, call spillway.Call) (spillway.Ticket, error) {
	at, err := t.decide(now, &call)
	if err != nil {
		return spillway.Ticket{}, err
	}
	return spillway.Ticket{By: t, Epoch: uint64(at), Criticality: call.Criticality}, nil
}

// decide decides for Admit. It takes a pointer to the Call, and returns a time in place of a
// Ticket, as copies of these are slow.
func (t *Throttle) decide(now time.Time, call *spillway.Call) (at time.Duration, err error) {
	at = t.clock.read(now)
	return at, t.classes[call.Criticality.Index()].ask(at, call, &t.rand)
}

// Settle implements [spillway.Settler]; use [spillway.Ticket.Settle].
func (t *Throttle) Settle(now time.Time, ticket spillway.Ticket, o spillway.Outcome) {
	c, sent := &t.classes[ticket.Criticality.Index()], time.Duration(ticket.Epoch)
	if !o.Informs() {
		c.leave(sent)
		return
	}
	c.settle(t.clock.heard(now), sent, o, 1)
}

// Stats is the state of a [Throttle] by criticality; index it with
// [spillway.Criticality.Index].
type Stats [spillway.Criticalities]ClassStats

// ClassStats is the state of a [Throttle] for one criticality.
type ClassStats struct {
	State         State   // the state of the throttle in one word
	Probability   float64 // the probability at which a call is rejected now, from 0 to 1
	Limit         float64 // calls per second that may be sent; +Inf without a limit
	Requests      float64 // calls in the window, including those rejected here
	Accepts       float64 // calls in the window that the backend accepted
	RejectedTotal uint64  // calls rejected here since the start
	ProbesTotal   uint64  // calls sent above the limit since the start, such as probes
}

// Stats returns the state of the throttle at the time now.
func (t *Throttle) Stats(now time.Time) Stats {
	return t.classes.stats(t.clock.heard(now))
}

// rejections holds the error of each criticality for each probability, in percent.
var rejections = makeRejections()

func makeRejections() (all [spillway.Criticalities]*rejection.Table[spillway.RejectedError]) {
	for i := range all {
		c := spillway.Criticality(i) + spillway.Sheddable
		all[i] = rejection.NewTable(func(level float64) *spillway.RejectedError {
			return &spillway.RejectedError{
				Policy:      "throttle",
				Reason:      spillway.ReasonThrottle,
				Criticality: c,
				Level:       level,
				Limit:       100,
				Unit:        "% of " + c.String() + " calls rejected",
				Advice:      "the backend accepts too few of them; send less, or wait until it accepts more",
			}
		})
	}
	return all
}
