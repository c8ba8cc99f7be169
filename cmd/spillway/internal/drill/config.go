package drill

import (
	"fmt"
	"math"
	"time"
)

// Config is what a drill is asked to do. The tags are for the command line,
// where the defaults are.
type Config struct {
	Overload    float64       `default:"10" placeholder:"X" help:"Load offered during the step, in capacities of the backend (default ${default})."`
	Calm        time.Duration `default:"4s" placeholder:"DURATION" help:"How long 0.5 capacities are offered before the step (default ${default})."`
	Step        time.Duration `default:"8s" placeholder:"DURATION" help:"How long the overload lasts (default ${default})."`
	Recovery    time.Duration `default:"6s" placeholder:"DURATION" help:"How long 0.5 capacities are offered after the step (default ${default})."`
	Deadline    time.Duration `default:"100ms" placeholder:"DURATION" help:"When an answer is of no more use, from the intended send (default ${default})."`
	Service     time.Duration `default:"1.5ms" placeholder:"DURATION" help:"CPU time that the backend burns for one call (default ${default})."`
	Seed        uint64        `default:"1" placeholder:"N" help:"Seed of the arrival times (default ${default})."`
	MaxInFlight int           `default:"0" placeholder:"N" help:"In-flight limit of the protected caller; 0 is a quarter of capacity × deadline (default ${default})."`
	Port        int           `default:"0" placeholder:"N" help:"Port of the backend on 127.0.0.1; 0 is any free one (default ${default})."`
}

// A UsageError says which flag is wrong, what it is, and what it may be.
type UsageError struct {
	Flag    string // without the dashes
	Problem string
}

func (e *UsageError) Error() string { return "--" + e.Flag + " " + e.Problem }

// Bounds of what a drill can be asked to do. They keep its memory and its
// running time within what a laptop has to spare.
const (
	maxOverload = 100
	maxPhase    = 10 * time.Minute
	minService  = 100 * time.Microsecond
	maxService  = 50 * time.Millisecond
	maxDeadline = time.Minute
	maxInFlight = 1 << 20
	maxCalls    = 2_000_000
)

// Validate returns a [*UsageError] for the first field that is out of range.
func (c Config) Validate() error {
	if !(c.Overload > 0 && c.Overload <= maxOverload) { // also finds NaN
		return outOfRange("overload", c.Overload, "above 0 and at most 100")
	}
	for _, d := range []struct {
		flag     string
		is       time.Duration
		min, max time.Duration
	}{
		{"calm", c.Calm, RecoveryWindow, maxPhase},
		{"step", c.Step, RecoveryWindow, maxPhase},
		{"recovery", c.Recovery, RecoveryHold, maxPhase},
		{"service", c.Service, minService, maxService},
		{"deadline", c.Deadline, 2 * c.Service, maxDeadline},
	} {
		if d.is < d.min || d.is > d.max {
			return outOfRange(d.flag, d.is, fmt.Sprintf("from %v to %v", d.min, d.max))
		}
	}
	if c.MaxInFlight < 0 || c.MaxInFlight > maxInFlight {
		return outOfRange("max-in-flight", c.MaxInFlight, fmt.Sprintf("from 0 (derive it) to %d", maxInFlight))
	}
	if c.Port < 0 || c.Port > math.MaxUint16 {
		return outOfRange("port", c.Port, "from 0 (any free one) to 65535")
	}
	return c.validateSize(float64(time.Second) / float64(c.Service))
}

// validateSize bounds the number of calls that the drill has to remember, at a
// capacity that the service time allows at best.
func (c Config) validateSize(capacity float64) error {
	calls := 0.0
	for _, p := range c.phases(capacity) {
		calls += p.OfferedRPS * (p.End - p.Start)
	}
	if calls > maxCalls {
		return outOfRange("overload", c.Overload, fmt.Sprintf(
			"lower, or the phases shorter, or --service longer: they ask for %.0f calls, and a drill can keep %d", calls, maxCalls))
	}
	return nil
}

func outOfRange(flag string, is any, must string) error {
	return &UsageError{flag, fmt.Sprintf("is %v, must be %s", is, must)}
}

// calmLoad is offered before and after the step, in capacities: enough that a
// backlog matters, and enough room to work it off.
const calmLoad = 0.5

func (c Config) length() time.Duration { return c.Calm + c.Step + c.Recovery }

func (c Config) settings() Settings {
	return Settings{
		Overload:   c.Overload,
		Calm:       calmLoad,
		DeadlineMS: milliseconds(c.Deadline),
		ServiceMS:  milliseconds(c.Service),
		Seed:       c.Seed,
		Phases:     c.phases(0),
		Caller:     fmt.Sprintf("%d immediate retries, each attempt may take the deadline", naiveRetries),
		Protected:  "spillhttp.Transport: throttle, in-flight limit, retries within a 10 % budget, one deadline for all attempts",
	}
}

// phases lays the three phases end to end.
func (c Config) phases(capacity float64) []Phase {
	t1 := c.Calm.Seconds()
	t2 := t1 + c.Step.Seconds()
	t3 := t2 + c.Recovery.Seconds()
	return []Phase{
		{PhaseCalm, 0, t1, calmLoad, calmLoad * capacity},
		{PhaseStep, t1, t2, c.Overload, c.Overload * capacity},
		{PhaseRecovery, t2, t3, calmLoad, calmLoad * capacity},
	}
}

// inFlightLimit sizes the in-flight limit by Little's law: as many calls as the
// backend finishes in a quarter of the deadline. The backend then always has work.
// It also bounds what is sent when no call is answered in time: each then holds
// its place for the whole deadline, while the backend is left with the work, and
// so a quarter of the capacity is sent. More, and a backend that is slowed down
// for a moment would not come back.
func (c Config) inFlightLimit(capacity float64) (limit int, rule string) {
	if c.MaxInFlight > 0 {
		return c.MaxInFlight, "--max-in-flight"
	}
	limit = int(capacity * c.Deadline.Seconds() / 4)
	if limit < minInFlight {
		return minInFlight, fmt.Sprintf("the least that is used, %d", minInFlight)
	}
	return limit, "a quarter of capacity × deadline"
}

// minInFlight lets one call be on its way while the backend works on another.
const minInFlight = 2
