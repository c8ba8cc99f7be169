package drill

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/load"
	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/process"
)

// Config configures a drill. The tags are for the command line, which has the defaults and knows the words.
type Config struct {
	Protect     string        `enum:"callers,server,both,proxy,none" default:"both" placeholder:"WHO" help:"Which side uses Spillway in the protected run: both, callers, server, proxy (a process in front of the backend), none (default ${default})."`
	Backend     string        `enum:"auto,cpu,mixed,blocking" default:"auto" placeholder:"KIND" help:"What a call does at the backend: cpu burns CPU time, mixed waits 5 ms in between, blocking waits for one of 8 slots and holds it (default cpu; blocking on a machine with one CPU, which callers and a cpu backend would share)."`
	Off         string        `enum:"none,throttle,shed" default:"none" placeholder:"POLICY" help:"Policy that is switched off in the protected run, to see what it is worth: throttle, shed or none (default ${default})."`
	Clients     int           `default:"1" placeholder:"N" help:"Callers that share the load, each with separate connections and policies (default ${default})."`
	Scenario    string        `enum:"step,degradation,retry-storm" default:"step" placeholder:"NAME" help:"What happens: step, more load than the backend can do; degradation, a step to which the protected server answers with a third of the work; or retry-storm, a short outage at a load that it can do (default ${default})."`
	Overload    float64       `default:"10" placeholder:"X" help:"Load offered during the step, not in a retry-storm, in capacities of the backend (default ${default})."`
	Calm        time.Duration `default:"1s" placeholder:"DURATION" help:"Duration of the calm load before the step (default ${default})."`
	Step        time.Duration `default:"0s" placeholder:"DURATION" help:"Duration of the overload or of the outage (default 8s; 1.5s for the outage of a retry-storm)."`
	Recovery    time.Duration `default:"5s" placeholder:"DURATION" help:"Duration of the calm load after the step (default ${default})."`
	Deadline    time.Duration `default:"0s" placeholder:"DURATION" help:"Deadline of a call, from its intended send time; later answers do not count (default the time for 100 calls at the capacity)."`
	Service     time.Duration `default:"0s" placeholder:"DURATION" help:"Work of one call: CPU time of a cpu or mixed backend, or how long a blocking one holds its slot (default by the speed of this machine, so that generator, callers and rejections leave the backend its processor)."`
	Retries     int           `default:"-1" placeholder:"N" help:"Immediate retries of callers without Spillway (default 3; 0 in a step with --protect=server or proxy, where retries would only add load)."`
	Mix         []float64     `default:"1,1,1,1" placeholder:"N" help:"Proportions of SHEDDABLE, SHEDDABLE_PLUS, CRITICAL and CRITICAL_PLUS calls (default ${default})."`
	HTTP2       bool          `name:"http2" env:"SPILLWAY_HTTP2" help:"Call over HTTP/2 in place of HTTP/1.1."`
	Body        int           `default:"0" placeholder:"BYTES" help:"Send a body of this length with each call (default none)."`
	Seed        uint64        `default:"1" placeholder:"N" help:"Seed of the arrival times and their classes (default ${default})."`
	MaxInFlight int           `default:"0" placeholder:"N" help:"In-flight limit of all protected callers together (default capacity × deadline)."`
	Port        int           `default:"0" env:"SPILLWAY_BACKEND_PORT" placeholder:"N" help:"Port of the backend on 127.0.0.1 (default any free one)."`
}

// Validate returns a [*process.UsageError] for the first field that is out of range. The bounds keep
// memory and running time small enough for a laptop.
func (c Config) Validate() error {
	callers, server := Protects(c.Protect)
	switch {
	case c.Off == offThrottle && !callers:
		return outOfRange("off", strconv.Quote(c.Off), "none or shed, as the callers have no throttle with --protect="+c.Protect)
	case c.Off == offShed && !server:
		return outOfRange("off", strconv.Quote(c.Off), "none or throttle, as the server does not shed with --protect="+c.Protect)
	}
	if c.Scenario == ScenarioDegradation && !server {
		return outOfRange("protect", strconv.Quote(c.Protect), "server or both, as only a protected server degrades its answers")
	}
	c = c.withDefaults()
	if !(c.Overload > 0 && c.Overload <= 100) { // also finds NaN
		return outOfRange("overload", c.Overload, "above 0 and at most 100")
	}
	sized := c.sized(c.leastSpacing())
	return cmp.Or(
		within("calm", c.Calm, load.RecoveryWindow, 10*time.Minute, ""),
		within("step", c.Step, load.RecoveryWindow, 10*time.Minute, ""),
		within("recovery", c.Recovery, load.RecoveryHold, 10*time.Minute, ""),
		within("service", sized.Service, 100*time.Microsecond, 400*time.Millisecond, " (0: derive it)"),
		within("deadline", sized.Deadline, 2*sized.unloaded(), time.Minute, ""),
		c.validateMix(),
		within("max-in-flight", c.MaxInFlight, 0, 1<<20, " (0: derive it)"),
		within("clients", c.Clients, 1, 1000, ""),
		within("retries", c.Retries, 0, 10, fmt.Sprintf(", or %d (they follow from --protect)", derivedRetries)),
		within("body", c.Body, 0, 1<<20, ""),
		within("port", c.Port, 0, math.MaxUint16, " (0: any free one)"),
		c.validateSize(),
	)
}

func within[T int | time.Duration](flag string, is, least, most T, note string) error {
	if is < least || is > most {
		return outOfRange(flag, is, fmt.Sprintf("from %v to %v%s", least, most, note))
	}
	return nil
}

func (c Config) validateMix() error {
	total := 0.0
	for _, share := range c.Mix {
		if !(share >= 0 && share <= 1000) { // also finds NaN
			return outOfRange("mix", share, "from 0 to 1000 each")
		}
		total += share
	}
	if len(c.Mix) != spillway.Criticalities || total == 0 {
		return outOfRange("mix", c.Mix, fmt.Sprintf("%d numbers, not all 0", spillway.Criticalities))
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

// Protects reports whether callers and server use Spillway in the protected run.
func Protects(who string) (callers, server bool) {
	return who == ProtectCallers || who == ProtectBoth, who == ProtectServer || who == ProtectBoth
}

// The policies that can be switched off in the protected run.
const (
	offThrottle = "throttle"
	offShed     = "shed"
)

// derivedRetries selects the default retries.
const derivedRetries = -1

// withDefaults returns c with its defaults, where these do not depend on the machine.
func (c Config) withDefaults() Config {
	step, retries := 8*time.Second, 3
	switch {
	case c.Scenario == ScenarioStorm:
		step = 1500 * time.Millisecond
	case c.Protect == ProtectServer, c.Protect == ProtectProxy:
		retries = 0 // 10 times the capacity would become 40 times
	}
	c.Step = cmp.Or(c.Step, step)
	if c.Retries == derivedRetries {
		c.Retries = retries
	}
	return c
}

// backendAuto selects the default backend.
const backendAuto = "auto"

// backendFor returns the default backend of a machine: with one processor, one that needs next to none.
func backendFor(cpus int) string {
	if cpus == 1 {
		return process.KindBlocking
	}
	return process.KindCPU
}

// unloaded returns the latency of a call at an idle backend.
func (c Config) unloaded() time.Duration {
	if c.Backend == process.KindMixed {
		return c.Service + process.MixedWait
	}
	return c.Service
}

// validateSize bounds the number of calls that the drill has to remember, at the highest
// possible capacity.
func (c Config) validateSize() error {
	const most = 2_000_000
	capacity := float64(c.parallel()) / c.sized(c.leastSpacing()).Service.Seconds()
	calls := 0.0
	for _, p := range c.phases(capacity) {
		calls += p.OfferedRPS * (p.End - p.Start)
	}
	if calls > most {
		return outOfRange("overload", c.Overload, fmt.Sprintf(
			"lower, or the phases shorter, or --service longer: they ask for %.0f calls, and a drill can keep %d", calls, most))
	}
	return nil
}

func outOfRange(flag string, is any, must string) error {
	return &process.UsageError{Flag: flag, Problem: fmt.Sprintf("is %v, must be %s", is, must)}
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

func (c Config) length() time.Duration { return c.Calm + c.Step + c.Recovery }

func (c Config) wire() load.Format { return load.Format{HTTP2: c.HTTP2, Body: make([]byte, c.Body)} }

func (c Config) settings() Settings {
	phases := c.phases(0)
	return Settings{
		Scenario:   c.Scenario,
		Overload:   phases[1].Load,
		Calm:       phases[0].Load,
		DeadlineMS: milliseconds(c.Deadline),
		ServiceMS:  milliseconds(c.Service),
		Seed:       c.Seed,
		Phases:     phases,
		Protect:    c.Protect,
		Backend:    c.Backend,
		Retries:    c.Retries,
		Clients:    c.Clients,
		Wire:       c.wire().String(),
		Mix:        c.Mix,
		Caller:     c.callerWords(),
		Protected:  protections[c.Protect],
	}
}

func (c Config) callerWords() string {
	if c.Retries == 0 {
		return "no retries"
	}
	return fmt.Sprintf("%d immediate retries, each attempt may take the deadline", c.Retries)
}

// protections describe what is protected, by who is.
var protections = map[string]string{
	ProtectCallers: "spillhttp.Transport: throttle, in-flight limit, retries within a 10 % budget, one deadline for all attempts",
	ProtectServer:  "spillhttp.Handler: sheds by criticality, before net/http has read the request where it can",
	ProtectBoth:    "spillhttp.Transport (throttle, in-flight limit, retry budget, one deadline) and spillhttp.Handler (sheds by criticality)",
	ProtectProxy:   "spillway proxy in a process of its own, where the callers run: mode enforce, an internal listener, defaults otherwise",
	ProtectNone:    "the same once more",
}

func (c Config) phases(capacity float64) []Phase {
	t1 := c.Calm.Seconds()
	t2 := t1 + c.Step.Seconds()
	t3 := t2 + c.Recovery.Seconds()
	calm, step := calmLoad, c.Overload
	if c.Scenario == ScenarioStorm {
		calm, step = stormLoad, stormLoad
	}
	return []Phase{
		{PhaseCalm, 0, t1, calm, calm * capacity},
		{PhaseStep, t1, t2, step, step * capacity},
		{PhaseRecovery, t2, t3, calm, calm * capacity},
	}
}

// inFlightLimit sizes the in-flight limit of the protected caller. A backend that bounds its
// queue itself, by criticality, needs no limit in the caller, which does not distinguish
// classes: the limit is then the number of connections. Such a backend with a pool must first learn what it
// can do. Until then it queues what comes, so the limit is what it can answer within the deadline (Little's
// law). For other backends it is what they finish in a quarter of the deadline: they always have work then.
// It also bounds the load when no call is answered in time: each call then holds its slot for
// the whole deadline, so a quarter of the capacity is sent. With more, a backend that was slow
// for a moment would not recover.
func (c Config) inFlightLimit(capacity float64) (limit int, rule string) {
	callers, server := Protects(c.Protect)
	limit, rule = int(capacity*c.Deadline.Seconds()/4), "a quarter of capacity × deadline"
	switch {
	case !callers:
		return 0, ""
	case c.MaxInFlight > 0:
		limit, rule = c.MaxInFlight, "--max-in-flight"
	case server && c.Backend == process.KindBlocking:
		limit, rule = max(int(capacity*c.Deadline.Seconds()), minInFlight), "capacity × deadline"
	case server:
		limit, rule = connections(capacity, c.Deadline), "one for each connection: the backend bounds its queue"
	case limit < minInFlight:
		limit, rule = minInFlight, fmt.Sprintf("the least that is used, %d", minInFlight)
	}
	return c.Clients * share(limit, c.Clients), rule
}

// minInFlight allows one call in transit while the backend works on another.
const minInFlight = 2
