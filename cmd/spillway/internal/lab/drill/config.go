package drill

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/process"
)

// Config configures a drill. The tags are for the command line, which has the defaults.
type Config struct {
	Protect     string        `default:"both" placeholder:"WHO" help:"Which side uses Spillway in the protected run: both, callers, server, proxy (a process in front of the backend), none (default ${default})."`
	Backend     string        `default:"cpu" placeholder:"KIND" help:"What a call does at the backend: cpu burns it, mixed waits 5 ms in between, blocking waits for one of 8 slots and holds it for 20 ms (default ${default})."`
	Clients     int           `default:"1" placeholder:"N" help:"Callers that share the load, each with separate connections and policies (default ${default})."`
	Scenario    string        `default:"step" placeholder:"NAME" help:"What happens: step, more load than the backend can do; degradation, a step to which the protected server answers with a third of the work; or retry-storm, a short outage at a load that it can do (default ${default})."`
	Overload    float64       `default:"10" placeholder:"X" help:"Load offered during the step, not in a retry-storm, in capacities of the backend (default ${default})."`
	Calm        time.Duration `default:"4s" placeholder:"DURATION" help:"Duration of the calm load before the step (default ${default})."`
	Step        time.Duration `default:"0s" placeholder:"DURATION" help:"Duration of the overload or of the outage (default 8s; 1.5s for the outage of a retry-storm)."`
	Recovery    time.Duration `default:"6s" placeholder:"DURATION" help:"Duration of the calm load after the step (default ${default})."`
	Deadline    time.Duration `default:"0s" placeholder:"DURATION" help:"Deadline of a call, from its intended send time; later answers do not count (default 100ms; 250ms for a blocking backend)."`
	Service     time.Duration `default:"1.5ms" placeholder:"DURATION" help:"CPU time that a cpu or mixed backend burns for one call (default ${default})."`
	Retries     int           `default:"-1" placeholder:"N" help:"Immediate retries of callers without Spillway (default 3; 0 in a step with --protect=server or proxy, where retries would only add load)."`
	Mix         []float64     `default:"1,1,1,1" placeholder:"N" help:"Proportions of SHEDDABLE, SHEDDABLE_PLUS, CRITICAL and CRITICAL_PLUS calls (default ${default})."`
	HTTP2       bool          `name:"http2" env:"SPILLWAY_HTTP2" help:"Call over HTTP/2 in place of HTTP/1.1."`
	Body        int           `default:"0" placeholder:"BYTES" help:"Send a body of this length with each call (default none)."`
	Seed        uint64        `default:"1" placeholder:"N" help:"Seed of the arrival times and their classes (default ${default})."`
	MaxInFlight int           `default:"0" placeholder:"N" help:"In-flight limit of all protected callers together (default capacity × deadline)."`
	Port        int           `default:"0" placeholder:"N" help:"Port of the backend on 127.0.0.1 (default any free one)."`
}

// A UsageError has the invalid flag, its value and the allowed values.
type UsageError = process.UsageError

// Bounds of a Config. They keep memory and running time small enough for a laptop.
const (
	maxOverload = 100
	maxPhase    = 10 * time.Minute
	minService  = 100 * time.Microsecond
	maxService  = 50 * time.Millisecond
	maxDeadline = time.Minute
	maxInFlight = 1 << 20
	maxRetries  = 10
	maxShare    = 1000
	maxClients  = 1000
	maxCalls    = 2_000_000
	maxBody     = 1 << 20
)

// Validate returns a [*UsageError] for the first field that is out of range.
func (c Config) Validate() error {
	if err := c.validateNames(); err != nil {
		return err
	}
	c = c.withDefaults()
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
		{"deadline", c.Deadline, 2 * c.unloaded(), maxDeadline},
	} {
		if d.is < d.min || d.is > d.max {
			return outOfRange(d.flag, d.is, fmt.Sprintf("from %v to %v", d.min, d.max))
		}
	}
	if err := c.validateMix(); err != nil {
		return err
	}
	for _, n := range []struct {
		flag            string
		is, least, most int
		note            string
	}{
		{"max-in-flight", c.MaxInFlight, 0, maxInFlight, " (0: derive it)"},
		{"clients", c.Clients, 1, maxClients, ""},
		{"retries", c.Retries, 0, maxRetries, fmt.Sprintf(", or %d (they follow from --protect)", derivedRetries)},
		{"body", c.Body, 0, maxBody, ""},
		{"port", c.Port, 0, math.MaxUint16, " (0: any free one)"},
	} {
		if n.is < n.least || n.is > n.most {
			return outOfRange(n.flag, n.is, fmt.Sprintf("from %d to %d%s", n.least, n.most, n.note))
		}
	}
	return c.validateSize(c.bestCapacity())
}

func (c Config) validateMix() error {
	total := 0.0
	for _, share := range c.Mix {
		if !(share >= 0 && share <= maxShare) { // also finds NaN
			return outOfRange("mix", share, fmt.Sprintf("from 0 to %v each", maxShare))
		}
		total += share
	}
	if len(c.Mix) != spillway.Criticalities || total == 0 {
		return outOfRange("mix", c.Mix, fmt.Sprintf("%d numbers, not all 0", spillway.Criticalities))
	}
	return nil
}

// validateNames returns an error for the first field that is not one of its words.
func (c Config) validateNames() error {
	for _, f := range []struct {
		flag, is string
		words    []string
	}{
		{"protect", c.Protect, []string{ProtectCallers, ProtectServer, ProtectBoth, ProtectProxy, ProtectNone}},
		{"scenario", c.Scenario, []string{ScenarioStep, ScenarioDegradation, ScenarioStorm}},
		{"backend", c.Backend, []string{process.KindCPU, process.KindMixed, process.KindBlocking}},
	} {
		if !slices.Contains(f.words, f.is) {
			return outOfRange(f.flag, strconv.Quote(f.is), "one of "+strings.Join(f.words, ", "))
		}
	}
	if c.Scenario == ScenarioDegradation && !c.protectsServer() {
		return outOfRange("protect", strconv.Quote(c.Protect), "server or both, as only a protected server degrades its answers")
	}
	return nil
}

// Who is protected in the protected run.
const (
	ProtectCallers = "callers"
	ProtectServer  = "server"
	ProtectBoth    = "both"
	ProtectProxy   = "proxy" // neither callers nor server, but a proxy between them
	ProtectNone    = "none"  // shows how far two equal runs differ
)

func (c Config) protectsCallers() bool {
	return c.Protect == ProtectCallers || c.Protect == ProtectBoth
}
func (c Config) protectsServer() bool { return c.Protect == ProtectServer || c.Protect == ProtectBoth }

// The default deadlines. A call that waits for a slot takes so long that the shorter one
// would be too close even for a server that is not overloaded.
const (
	usualDeadline    = 100 * time.Millisecond
	blockingDeadline = 250 * time.Millisecond
)

// The default lengths of the step.
const (
	usualStep   = 8 * time.Second
	usualOutage = 1500 * time.Millisecond
)

// The default retries. Callers without protected retries make none: 10 times the capacity
// would become 40 times.
const (
	derivedRetries = -1
	usualRetries   = 3
)

// withDefaults returns c with the values that zero represents, where these do not
// depend on the capacity.
func (c Config) withDefaults() Config {
	if c.Deadline == 0 {
		c.Deadline = usualDeadline
		if c.Backend == process.KindBlocking {
			c.Deadline = blockingDeadline
		}
	}
	if c.Step == 0 {
		c.Step = usualStep
		if c.Scenario == ScenarioStorm {
			c.Step = usualOutage
		}
	}
	if c.Retries == derivedRetries {
		c.Retries = usualRetries
		if c.Scenario != ScenarioStorm && (c.Protect == ProtectServer || c.Protect == ProtectProxy) {
			c.Retries = 0
		}
	}
	return c
}

// unloaded is the latency of a call at an idle backend.
func (c Config) unloaded() time.Duration {
	switch c.Backend {
	case process.KindMixed:
		return c.Service + process.MixedWait
	case process.KindBlocking:
		return process.SlotHold
	}
	return c.Service
}

// burns is the CPU time of a call.
func (c Config) burns() time.Duration {
	if c.Backend == process.KindBlocking {
		return 0
	}
	return c.Service
}

// bestCapacity is the highest possible capacity of the backend.
func (c Config) bestCapacity() float64 {
	if c.Backend == process.KindBlocking {
		return process.Slots / process.SlotHold.Seconds()
	}
	return 1 / c.Service.Seconds()
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
	return &UsageError{Flag: flag, Problem: fmt.Sprintf("is %v, must be %s", is, must)}
}

// The scenarios of a drill.
const (
	ScenarioStep        = "step"        // more load than the backend can do
	ScenarioDegradation = "degradation" // the same, and the protected server answers cheaper
	ScenarioStorm       = "retry-storm" // an outage, at a load below the capacity if no caller retries
)

// calmLoad is the load before and after the step, in capacities: high enough that a backlog
// matters, low enough to work it off. stormLoad is the load of a retry storm: below the
// capacity, and above it once each call is tried twice.
const (
	calmLoad  = 0.5
	stormLoad = 0.8
)

// loads returns the offered load before and after the step, and during it.
func (c Config) loads() (calm, step float64) {
	if c.Scenario == ScenarioStorm {
		return stormLoad, stormLoad
	}
	return calmLoad, c.Overload
}

func (c Config) length() time.Duration { return c.Calm + c.Step + c.Recovery }

func (c Config) settings() Settings {
	calm, step := c.loads()
	return Settings{
		Scenario:   c.Scenario,
		Overload:   step,
		Calm:       calm,
		DeadlineMS: milliseconds(c.Deadline),
		ServiceMS:  milliseconds(c.burns()),
		Seed:       c.Seed,
		Phases:     c.phases(0),
		Protect:    c.Protect,
		Backend:    c.Backend,
		Retries:    c.Retries,
		Clients:    c.Clients,
		Wire:       c.wire().words(),
		Mix:        c.Mix,
		Caller:     c.callerWords(),
		Protected:  c.protection(),
	}
}

// callerWords describes the callers without Spillway.
func (c Config) callerWords() string {
	if c.Retries == 0 {
		return "no retries"
	}
	return fmt.Sprintf("%d immediate retries, each attempt may take the deadline", c.Retries)
}

const (
	callersWords = "spillhttp.Transport: throttle, in-flight limit, retries within a 10 % budget, one deadline for all attempts"
	serverWords  = "spillhttp.Handler: sheds by criticality, before net/http has read the request where it can"
	proxyWords   = "spillway proxy in a process of its own, where the callers run: mode enforce, an internal listener, defaults otherwise"
	bothWords    = "spillhttp.Transport (throttle, in-flight limit, retry budget, one deadline) and spillhttp.Handler (sheds by criticality)"
)

// protection describes what is protected.
func (c Config) protection() string {
	switch c.Protect {
	case ProtectCallers:
		return callersWords
	case ProtectServer:
		return serverWords
	case ProtectBoth:
		return bothWords
	case ProtectProxy:
		return proxyWords
	}
	return "the same once more"
}

// phases returns the three phases, one after the other.
func (c Config) phases(capacity float64) []Phase {
	t1 := c.Calm.Seconds()
	t2 := t1 + c.Step.Seconds()
	t3 := t2 + c.Recovery.Seconds()
	calm, step := c.loads()
	return []Phase{
		{PhaseCalm, 0, t1, calm, calm * capacity},
		{PhaseStep, t1, t2, step, step * capacity},
		{PhaseRecovery, t2, t3, calm, calm * capacity},
	}
}

// inFlightLimit sizes the in-flight limit of the protected caller. A backend that bounds its
// queue itself, by criticality, needs no limit in the caller, which does not distinguish
// classes: the limit is then the number of connections. For other backends it follows from
// Little's law: the number of calls that the backend finishes in a quarter of the deadline.
// The backend then always has work.
// It also bounds the load when no call is answered in time: each call then holds its slot for
// the whole deadline, so a quarter of the capacity is sent. With more, a backend that was slow
// for a moment would not recover.
func (c Config) inFlightLimit(capacity float64) (limit int, rule string) {
	if !c.protectsCallers() {
		return 0, ""
	}
	limit, rule = c.inFlightOfAll(capacity)
	return c.Clients * share(limit, c.Clients), rule
}

func (c Config) inFlightOfAll(capacity float64) (limit int, rule string) {
	if c.MaxInFlight > 0 {
		return c.MaxInFlight, "--max-in-flight"
	}
	if c.protectsServer() {
		return connections(capacity, c.Deadline), "one for each connection: the backend bounds its queue"
	}
	limit = int(capacity * c.Deadline.Seconds() / 4)
	if limit < minInFlight {
		return minInFlight, fmt.Sprintf("the least that is used, %d", minInFlight)
	}
	return limit, "a quarter of capacity × deadline"
}

// minInFlight allows one call in transit while the backend works on another.
const minInFlight = 2
