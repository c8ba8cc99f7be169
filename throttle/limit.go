package throttle

import (
	"math"
	"time"
)

// minEvidence is the evidence from which a backend counts as recovered. Accepts in a row are
// evidence, measured as the logarithm of 1/p, where p is the chance of so many at a backend that
// has not recovered. Here p is 1/256.
var minEvidence = math.Log(256)

const (
	// rampFactor is the factor by which each accept multiplies the limit after silence: five
	// accepts raise it from one call per second to a thousand.
	rampFactor = 4
	// riseFactor is the factor by which each round trip without a rejection multiplies the
	// limit once the backend has recovered.
	riseFactor = 2
	// unlimited is a limit, in calls per second, that no process reaches.
	unlimited = 1e9
	// equalizing is the number of windows in which a limit below one call per ProbeInterval rises
	// to that, so that clients that rarely call get equal shares of the backend.
	equalizing = 10
	// latest is the maximum number of accepts of a ramp or a rise that offset its next rejections.
	// With 3 and with 8, a backend with one dead task of four recovers equally soon. With 5, one
	// client sends no more to an overloaded backend than if the first rejection ended a rise.
	latest = 5
	// hardlyAny is the share of calls up to which accepts count as none, so that probes are sent
	// instead. At so low a limit a recovery would be noticed after minutes only.
	hardlyAny = 1. / 200
)

// A phase of a limiter says how its limit moves.
type phase uint8

const (
	open   phase = iota // there is no limit
	steady              // accepts raise the limit, and rejections lower it
	silent              // nothing is accepted, or the first accepts after that multiply the limit
	rising              // nothing is rejected any more, and the limit doubles with each round trip
)

// A limiter sets the limit, the number of calls per second that may be sent, by the rules in the
// package comment. All its times are durations since the first call of the throttle.
type limiter struct {
	phase   phase
	limit   float64       // calls per second
	demand  float64       // calls per second that are made, sent or not
	former  float64       // the limit before the overload that goes on now, in calls per second
	wasOpen bool          // whether there was no limit before that overload
	changed time.Duration // when the limit last fell, or silence ended
	raised  time.Duration // when the limit last doubled, in the phase rising

	accepted   time.Duration // when the last accept was settled; 0: never
	rejectedAt time.Duration // when the last rejection that ended a streak was settled
	settled    time.Duration // when a call was last settled as accepted or as rejected

	debt    run    // the calls since more were sent than K times those that were accepted
	streak  streak // the accepts since the last rejection
	pending pending
	proven  bool // a call has ended as accepted since the limit fell
}

// A run counts the calls that were settled since a time: those that were sent, and how many of them
// were accepted.
type run struct {
	since         time.Duration
	sent, accepts float64
}

// A streak counts the accepted calls since the last rejection. It has only calls that were sent
// after that rejection arrived.
type streak struct {
	accepts float64
	spare   float64       // accepts that can still offset rejections, at most latest
	since   time.Duration // when the first of the accepts arrived
	sent    time.Duration // when the first of the accepted calls was sent
}

// notAccepted counts a rejection of a call that was sent at the given time, and reports whether the
// limit fell. recent is the accepts per second in the window.
func (l *limiter) notAccepted(cfg *Config, at, sent time.Duration, recent float64) (fell bool) {
	l.settled = at
	if l.phase != open && sent <= l.changed {
		return false
	}
	// A call that was sent before the streak says nothing about it.
	if sent >= l.streak.sent && !l.outweighed(cfg) {
		l.stop(cfg, at)
		l.streak, l.rejectedAt = streak{}, at
	}
	if l.debt.sent == 0 {
		l.debt.since = at
	}
	l.debt.sent++
	l.limit = max(l.limit-1/cfg.Window.Seconds(), 1/cfg.Window.Seconds())
	if !l.overspent(cfg, at) {
		return false
	}
	l.fall(cfg, at, recent)
	return true
}

// outweighed counts a rejection during a ramp or a rise, and reports whether the accepts outweigh
// it, so that the ramp or rise goes on. At the limit one call in K is accepted, so a rejection uses
// up 1/(K − 1) accepts. A backend that always rejects some of its calls, as with one dead task of
// several, must be able to recover.
func (l *limiter) outweighed(cfg *Config) bool {
	if l.phase != silent && l.phase != rising {
		return false
	}
	l.streak.spare -= 1 / (cfg.K - 1)
	return l.streak.spare > 0
}

// accept counts an accepted call, and reports whether another call is sent for it regardless of the
// limit.
func (l *limiter) accept(cfg *Config, at, sent time.Duration) (release bool) {
	l.settled = at
	if l.phase == open {
		l.accepted = at
		l.pay(cfg)
		return false
	}
	if sent <= l.changed {
		return false
	}
	l.accepted, l.proven = at, true
	l.pay(cfg)
	l.limit += (cfg.K - 1) / cfg.Window.Seconds()
	if sent <= l.rejectedAt {
		return false
	}
	return l.extend(cfg, at, sent)
}

// pay offsets the debt with an accept.
func (l *limiter) pay(cfg *Config) {
	if l.debt.sent == 0 {
		return
	}
	l.debt.sent++
	l.debt.accepts++
	if l.debt.sent <= cfg.K*l.debt.accepts {
		l.debt = run{}
	}
}

// hear notes the time of accepts that change nothing else.
func (l *limiter) hear(at time.Duration) {
	l.accepted, l.settled = max(l.accepted, at), max(l.settled, at)
}

// idle forgets everything after a Window without outcomes.
func (l *limiter) idle(cfg *Config, at time.Duration) {
	if at-l.settled > cfg.Window {
		*l = limiter{settled: at}
	}
}

// overspent reports whether more was sent than K times what was accepted, by MinRequests and, at a
// backend that has been accepting calls, by the calls of a certain time: a shorter burst of
// rejections is not an overload. Without a limit that time is a quarter of a ProbeInterval. With
// one it is a whole ProbeInterval, as a late reaction then costs little.
func (l *limiter) overspent(cfg *Config, at time.Duration) bool {
	allowed := float64(cfg.MinRequests)
	if l.accepted > 0 && l.phase != silent && at-l.accepted <= cfg.Window {
		while := cfg.quarter()
		if l.phase == steady {
			while = cfg.ProbeInterval
		}
		allowed += float64(l.debt.sent * float64(while) / float64(at-l.debt.since))
	}
	return l.debt.sent-float64(cfg.K*l.debt.accepts) >= allowed
}

// fall sets the limit to K times the calls per second that were accepted since the debt began.
func (l *limiter) fall(cfg *Config, at time.Duration, recent float64) {
	switch {
	case l.phase == open || l.phase != silent && at-l.changed > cfg.Window/2:
		l.wasOpen, l.former = l.phase == open, cfg.K*recent
	case l.phase != silent: // the overload goes on
		l.former = max(l.former, cfg.K*recent)
	}
	l.phase, l.limit = silent, 0
	if l.debt.accepts > 0 {
		l.limit = cfg.K * l.debt.accepts / (at - l.debt.since).Seconds()
	}
	if l.limit > hardlyAny*l.demand {
		l.phase = steady
	}
	l.changed = at
	l.debt, l.streak = run{}, streak{}
	l.pending, l.proven = pending{begin: at, counted: at}, false
}

// extend adds an accept to the streak, moves the limit as the phase says, and reports whether
// another call is sent regardless of the limit.
func (l *limiter) extend(cfg *Config, at, sent time.Duration) (release bool) {
	s := &l.streak
	if s.accepts == 0 {
		s.since, s.sent = at, sent
	}
	s.accepts++
	s.spare = min(s.spare+1, latest)
	switch l.phase {
	case silent:
		return l.ramp(cfg, at)
	case steady:
		if s.accepts*math.Log(cfg.K) >= minEvidence && at-s.since >= cfg.ProbeInterval {
			l.rise(at)
		}
	case rising:
		if sent > l.raised {
			l.rise(at)
		}
		return true
	case open: // nothing is limited
	}
	return false
}

// ramp multiplies the limit for each accept after silence, until it is what it was before the
// overload.
func (l *limiter) ramp(cfg *Config, at time.Duration) (release bool) {
	if l.debt.accepts == 0 { // rejected probes of the silence say nothing about the capacity now
		l.debt, l.changed = run{}, l.streak.sent-1
	}
	l.limit = max(l.limit, math.Pow(rampFactor, min(l.streak.accepts, 16))/cfg.ProbeInterval.Seconds())
	former := max(l.former, rampFactor*hardlyAny*l.demand) // any lower limit counts as silence
	if l.limit < former {
		return true
	}
	// From here on only calls that are sent at this limit are evidence for or against it.
	l.phase, l.rejectedAt, l.streak = steady, at, streak{}
	if l.wasOpen {
		l.rise(at)
	} else {
		l.limit = max(former, 1/cfg.ProbeInterval.Seconds())
	}
	return l.wasOpen
}

// rise doubles the limit, and ends it above unlimited.
func (l *limiter) rise(at time.Duration) {
	l.phase, l.raised = rising, at
	l.limit *= riseFactor
	if l.limit > unlimited {
		*l = limiter{accepted: l.accepted, settled: l.settled}
	}
}

// stop ends a ramp or a rise at a rejection: the limit becomes K times the calls per second that
// were accepted during it, if that is lower.
func (l *limiter) stop(cfg *Config, at time.Duration) {
	if (l.phase == silent || l.phase == rising) && l.streak.accepts > 0 {
		l.limit = min(l.limit, cfg.K*l.streak.accepts/(at-l.streak.sent).Seconds())
	}
	if l.phase == rising {
		l.phase = steady
	}
}

// pass is called after each period, of the duration passed. In the phase steady, a Window without
// accepts begins the phase silent, and a limit below one call per ProbeInterval rises.
func (l *limiter) pass(cfg *Config, at, passed time.Duration) {
	if l.phase != steady {
		return
	}
	if at-max(l.accepted, l.changed) > cfg.Window || l.limit < hardlyAny*l.demand {
		l.phase, l.proven = silent, false
		l.former = max(l.former, l.limit)
	}
	if low := 1/cfg.ProbeInterval.Seconds() - l.limit; low > 0 {
		l.limit += float64(low * min(1, passed.Seconds()/cfg.Window.Seconds()/equalizing))
	}
}
