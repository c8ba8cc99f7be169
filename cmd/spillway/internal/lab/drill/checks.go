package drill

import (
	"fmt"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/process"
)

// The promise of the protected run.
const (
	promiseGoodput = 0.90 // of what the backend could do of what is offered
	// promiseDegraded is the same where cheap answers cost a third: half of what they
	// could serve, since it is up to the load how many of them are needed.
	promiseDegraded = 1.5
	promiseRecovery = 2 * time.Second
	// promiseThrottled is for callers whom the backend rejects: their throttle
	// takes seconds to trust it again.
	promiseThrottled = 4 * time.Second
	promiseAttempts  = 1.10 // per call: the retry budget
	promiseDropShare = 0.01 // more, and it was the generator that was measured
)

// rejectionCost is what a rejection may cost the backend. Callers that are not
// protected send whatever the answer, so that all their attempts beyond the
// capacity are rejected: the line above which no goodput can be.
const rejectionCost = 10 * time.Microsecond

// conclude fills in everything that follows from the numbers.
func (r *Result) conclude() {
	r.Headline = r.headline()
	if r.Interrupted {
		return
	}
	r.Checks = r.checks()
	if !r.Passed() {
		r.Inconclusive = r.Busy()
	}
}

// Busy says why the backend had less than the processor with which its capacity was measured
// in the protected run, or why the load was not sent. It is empty if nothing shows that. A proxy and the
// callers, which share a processor, are busy themselves: that is not said.
func (r *Result) Busy() string {
	p, proxy := r.With.CPUPressure, r.Settings.Protect == ProtectProxy
	switch dropped := r.With.dropRatio(); {
	case !proxy && p != nil && *p >= busyPressure:
		return fmt.Sprintf("something lacked a CPU for %s of the %s", percent(*p), r.Settings.StepName())
	case !proxy && r.With.BackendRPS > 0 && r.With.BackendRPS < slowBackend*r.CapacityRPS:
		return fmt.Sprintf("the backend answered %.0f/s in a closed loop before the protected run, its capacity is %.0f/s", r.With.BackendRPS, r.CapacityRPS)
	case dropped > promiseDropShare:
		return fmt.Sprintf("the load generator dropped %s of its sends", percent(dropped))
	}
	return ""
}

// checks returns what was promised of what is protected.
func (r *Result) checks() []Check {
	callers, server := r.Settings.promises()
	storm := r.Settings.Scenario == ScenarioStorm // nothing can be promised of the outage
	var all []Check
	if (callers || server) && !storm {
		all = append(all, atLeast("goodput", r.With.GoodputRatio, r.goodputBound(), "goodput during the step is %s of capacity"))
	}
	if callers || server {
		all = append(all, r.checkRecovery())
	}
	if callers {
		all = append(all, r.checkAttempts())
	}
	if server && !storm && len(r.With.Classes) > 0 {
		all = append(all, atMost("order", misplaced(r.With.Classes), promiseOrder, "goodput that a class had while a higher one was rejected is %s"))
		if highest := &r.With.Classes[0]; highest.Offered > 0 {
			all = append(all, r.checkHighest(highest))
		}
	}
	// Whether the other checks mean anything.
	return append(all, atMost("generator", r.With.dropRatio(), promiseDropShare, "sends that the generator had to drop are %s"))
}

// atLeast returns the check of a share that must be at least want. The text has a verb for it.
func atLeast(name string, got, want float64, text string) Check {
	return Check{name, got >= want, &got, want, fmt.Sprintf(text+", promised at least %s", percent(got), percent(want))}
}

// atMost returns the check of a share that must be at most want. The text has a verb for it.
func atMost(name string, got, want float64, text string) Check {
	return Check{name, got <= want, &got, want, fmt.Sprintf(text+", allowed at most %s", percent(got), percent(want))}
}

// goodputBound is the least goodput that is promised, as a share of capacity. A
// backend behind a proxy has no rejections to pay for.
func (r *Result) goodputBound() float64 {
	s := &r.Settings
	bound := promiseGoodput * min(1, s.Overload)
	if s.Scenario == ScenarioDegradation {
		bound = max(bound, min(promiseDegraded, promiseDegraded/2*s.Overload))
	}
	if callers, _ := s.promises(); callers || s.Protect == ProtectProxy || s.Backend == process.KindBlocking {
		return bound
	}
	rejected := max(0, s.Overload*float64(1+s.Retries)-max(1, bound)) * r.CapacityRPS
	return bound * max(0, 1-rejected*rejectionCost.Seconds())
}

func (r *Result) checkRecovery() Check {
	got, want := r.With.RecoverS, promiseRecovery.Seconds()
	if callers, server := r.Settings.promises(); callers && server {
		want = promiseThrottled.Seconds()
	}
	text := fmt.Sprintf("service was back %s after the %s, promised within %s s", r.recovered(r.With), r.Settings.StepName(), number(want))
	return Check{"recovery", got != nil && *got <= want, got, want, text}
}

func (r *Result) checkAttempts() Check {
	got := r.With.AttemptsPerCall
	text := fmt.Sprintf("attempts per call during the %s are %.2f, promised at most %.2f", r.Settings.StepName(), got, promiseAttempts)
	return Check{"retries", got <= promiseAttempts, &got, promiseAttempts, text}
}

// headline returns the outcome in two short lines.
func (r *Result) headline() []string {
	if r.Without == nil {
		return []string{"Interrupted before the first run."}
	}
	lines := []string{fmt.Sprintf("Without: %.0f/s.", r.answered(r.Without))}
	if r.With != nil {
		lines = append(lines, fmt.Sprintf("With: %.0f/s.", r.answered(r.With)))
	}
	return lines
}

// Caption says what the numbers of the headline are. It is empty before the first run.
func (r *Result) Caption() string {
	if r.Without == nil {
		return ""
	}
	when, capacity := "during the step", ""
	if r.Settings.Scenario == ScenarioStorm {
		when = "after the outage"
	}
	if r.CapacityRPS > 0 {
		capacity = fmt.Sprintf("; capacity %.0f/s", r.CapacityRPS)
	}
	return "Calls answered in time " + when + capacity + "."
}

// answered returns the goodput that the headline has, per second.
func (r *Result) answered(run *Run) float64 {
	if r.Settings.Scenario == ScenarioStorm {
		return r.Afterwards(run)
	}
	return run.GoodputRPS
}

// Afterwards returns the goodput after the step, per second: 0 if the run was
// stopped before.
func (r *Result) Afterwards(run *Run) float64 {
	if len(run.Phases) < 3 || len(r.Settings.Phases) < 3 {
		return 0
	}
	p := r.Settings.Phases[2]
	length := min(run.Seconds, p.End) - p.Start
	if length <= 0 {
		return 0
	}
	return float64(run.Phases[2].Goodput) / length
}

func (r *Result) recovered(run *Run) string {
	switch {
	case run.RecoverS == nil:
		return "later than " + r.recoveryPhase()
	case *run.RecoverS == 0:
		return "at once"
	default:
		return fmt.Sprintf("within %.2f s", *run.RecoverS)
	}
}

func (r *Result) recoveryPhase() string {
	p := r.Settings.Phases[2]
	return number(p.End-p.Start) + " s"
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

func number(v float64) string { return fmt.Sprintf("%.4g", v) }
