package drill

import (
	"fmt"
	"time"

	"github.com/seed90641741/spillway/internal/tokens"
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
	promiseAttempts  = 1.10                                     // per call: the retry budget
	promiseCredit    = tokens.CreditCalls * tokens.DefaultRatio // retries that it starts with
	// promiseSent is how many calls the throttle sends for each that the backend accepts: K = 2, and what it sends until it
	// knows, at the beginning of the step.
	promiseSent      = 2.5
	promiseDropShare = 0.01 // more, and it was the generator that was measured
)

// conclude fills in everything that follows from the numbers.
func (r *Result) conclude() {
	r.Headline = r.headline()
	if r.Interrupted {
		return
	}
	r.Checks, r.Inconclusive = r.checks(), ""
	if !r.Passed() {
		r.Inconclusive = r.Noise()
	}
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
	if callers && !storm {
		all = append(all, r.checkSent())
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

// goodputBound is the least goodput that is promised, as a share of capacity.
func (r *Result) goodputBound() float64 {
	s := &r.Settings
	bound := promiseGoodput * min(1, s.Overload)
	if s.Scenario == ScenarioDegradation {
		bound = max(bound, min(promiseDegraded, promiseDegraded/2*s.Overload))
	}
	return bound
}

func (r *Result) checkRecovery() Check {
	got, want := r.With.RecoverS, promiseRecovery.Seconds()
	if callers, server := r.Settings.promises(); callers && server {
		want = promiseThrottled.Seconds()
	}
	text := fmt.Sprintf("service was back %s after the %s, promised within %s s", r.recovered(r.With), r.Settings.StepName(), number(want))
	return Check{"recovery", got != nil && *got <= want, got, want, text}
}

// checkAttempts holds the retries to their budget: a tenth of the calls. It counts from the beginning of the run, as a budget saves.
func (r *Result) checkAttempts() Check {
	attempts, retries := 0, 0
	for _, p := range r.With.Phases[:2] {
		attempts, retries = attempts+p.Attempts, retries+p.Retries
	}
	got := float64(attempts) / float64(max(1, attempts-retries))
	text := fmt.Sprintf("attempts per call until the end of the %s are %.3f, promised at most %.2f", r.Settings.StepName(), got, promiseAttempts)
	return Check{"retries", got <= promiseAttempts+promiseCredit/float64(max(1, attempts-retries)), &got, promiseAttempts, text}
}

// checkSent holds the throttle to its rule: it sends K calls for each that the backend accepts.
func (r *Result) checkSent() Check {
	got := float64(r.With.Attempts) / float64(max(1, r.With.Goodput+r.With.Late))
	text := fmt.Sprintf("calls sent during the step for each that was answered are %.2f, promised at most %.2f", got, promiseSent)
	return Check{"sent", got <= promiseSent, &got, promiseSent, text}
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
