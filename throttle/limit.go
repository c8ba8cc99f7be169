package throttle

import (
	"math"
	"time"
)

// minEvidence is the evidence for a backend that has recovered, as the logarithm of
// how unlikely it is that it has not: 1 in 256.
var minEvidence = math.Log(256)

const (
	// rampFactor is the factor by which each accept multiplies the limit after silence: five
	// lead from one call per second to a thousand.
	rampFactor = 4
	// riseFactor is the factor by which each round trip without a rejection multiplies the
	// limit once the backend has recovered.
	riseFactor = 2
	// unlimited is a limit, in calls per second, that no process reaches.
	unlimited = 1e9
	// equalizing is in how many windows a limit below one call per interval is led up
	// to it, so that clients which call seldom come to share the backend alike.
	equalizing = 10
	// latest is how many accepts of a ramp or a rise count against its next rejections. With 3 as
	// with 8 a backend with one dead task of four recovers as soon, and with 5 one client
	// sends as much to an overloaded backend as if the first rejection ended a rise.
	latest = 5
	// hardlyAny is the share of calls that is as good as none, so that probes are sent:
	// a limit that low would take minutes to show a recovery.
	hardlyAny = 1. / 200
)

// phase says how the limit moves.
type phase uint8

const (
	open   phase = iota // no limit
	steady              // it follows the accepts
	silent              // nothing is accepted, or the first calls after that
	rising              // nothing is rejected
)

// A limiter is the rule of the package: how many calls per second may be sent. All
// its times are since the first call that the throttle knows.
type limiter struct {
	phase   phase
	limit   float64       // calls per second
	demand  float64       // calls per second that are made, sent or not
	former  float64       // the limit before the present trouble
	wasOpen bool          // there was none before
	changed time.Duration // when the limit last fell, or silence ended
	raised  time.Duration // when it last rose, while rising

	accepted   time.Duration // when an accept was last heard of
	rejectedAt time.Duration // when a rejection was last heard of
	settled    time.Duration // when either was

	debt    run    // since what was sent last came to K times what was accepted, or less
	streak  streak // since the last rejection
	pending pending
	proven  bool // a call has ended as accepted since the limit fell
}

// A run is what was settled since some time.
type run struct {
	since         time.Duration
	sent, accepts float64
}

// A streak is the outcomes of calls that were sent after the last rejection that ended one
// arrived.
type streak struct {
	accepts float64
	spare   float64       // accepts that no rejection has used up
	since   time.Duration // when the first was heard of
	sent    time.Duration // when the first was sent
}

// notAccepted counts a rejection of a call that was sent at the given time, and reports whether the
// limit fell. recent is the accepts per second in the window.
func (l *limiter) notAccepted(cfg *Config, at, sent time.Duration, recent float64) (fell bool) {
	l.settled = at
	if l.phase != open && sent <= l.changed {
		return false
	}
	if sent >= l.streak.sent && !l.outweighed(cfg) { // else it is older news
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
// it: at the limit one call in K is accepted, so a rejection uses up 1/(K − 1) accepts. A backend
// that rejects some of all calls, as with one dead task of several, has recovered as far as it
// will.
func (l *limiter) outweighed(cfg *Config) bool {
	if l.phase != silent && l.phase != rising {
		return false
	}
	l.streak.spare -= 1 / (cfg.K - 1)
	return l.streak.spare > 0
}

// accept takes in an accept, and reports whether it releases a call at once.
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

// pay sets an accept off against the debt.
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

// hear takes in the time of accepts that change nothing else.
func (l *limiter) hear(at time.Duration) {
	l.accepted, l.settled = max(l.accepted, at), max(l.settled, at)
}

// idle forgets all after a Window without outcomes.
func (l *limiter) idle(cfg *Config, at time.Duration) {
	if at-l.settled > cfg.Window {
		*l = limiter{settled: at}
	}
}

// overspent reports whether more was sent than K times what was accepted, by MinRequests and,
// at a backend that has been accepting calls, by the calls of a certain time: a shorter burst
// of rejections is not an overload. That time is a quarter of an interval without a limit, and
// a whole interval with one, as a late reaction then costs little.
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

// fall sets the limit to K times what was accepted since the trouble began.
func (l *limiter) fall(cfg *Config, at time.Duration, recent float64) {
	switch {
	case l.phase == open || l.phase != silent && at-l.changed > cfg.Window/2:
		l.wasOpen, l.former = l.phase == open, cfg.K*recent
	case l.phase != silent: // the trouble goes on
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

// extend adds an accept to the streak and acts on it.
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

// ramp leads the limit back to what it was before the trouble.
func (l *limiter) ramp(cfg *Config, at time.Duration) (release bool) {
	if l.debt.accepts == 0 { // probes that were rejected say nothing of what is accepted now
		l.debt, l.changed = run{}, l.streak.sent-1
	}
	l.limit = max(l.limit, math.Pow(rampFactor, min(l.streak.accepts, 16))/cfg.ProbeInterval.Seconds())
	former := max(l.former, rampFactor*hardlyAny*l.demand) // a lower limit would be silence again
	if l.limit < former {
		return true
	}
	// From here on only calls that are sent at this limit say anything of it.
	l.phase, l.rejectedAt, l.streak = steady, at, streak{}
	if l.wasOpen {
		l.rise(at)
	} else {
		l.limit = max(former, 1/cfg.ProbeInterval.Seconds())
	}
	return l.wasOpen
}

// rise raises the limit, until nothing is limited.
func (l *limiter) rise(at time.Duration) {
	l.phase, l.raised = rising, at
	l.limit *= riseFactor
	if l.limit > unlimited {
		*l = limiter{accepted: l.accepted, settled: l.settled}
	}
}

// stop ends a ramp or a rise at a rejection: the limit is K times the calls accepted during
// it.
func (l *limiter) stop(cfg *Config, at time.Duration) {
	if (l.phase == silent || l.phase == rising) && l.streak.accepts > 0 {
		l.limit = min(l.limit, cfg.K*l.streak.accepts/(at-l.streak.sent).Seconds())
	}
	if l.phase == rising {
		l.phase = steady
	}
}

// pass lets time pass: a Window without accepts is noted, and a very low limit rises.
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
