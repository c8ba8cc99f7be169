package concurrency

import (
	"time"

	"github.com/seed90641741/spillway"
)

// Where requests end without an answer, at their deadlines or because their clients hang up, latency does not grow any more,
// whatever is in flight. If nearly all of them do, a first probe loses nothing. It is a search: what is in flight is halved until
// most requests are answered. If that is so because the backend has recovered meanwhile, throughput grows with what is in flight:
// twice as many are tried, while it does. A search may end with much less than the backend can serve, so that the limit grows
// quickly afterwards.

// searching is what is known of requests that end without an answer.
type searching struct {
	overdue bool          // nearly all of the last round
	search  bool          // the first probe is a search
	up      float64       // throughput of the last turn in which most were answered
	bounded bool          // throughput does not grow with more
	startup bool          // Limiting after a search, and throughput grows
	some    bool          // were answered during the search
	respite time.Duration // to the next search, after one that found nothing; at least a memory
}

// unanswered takes in the end of a round, and reports whether that is a reason to search.
func (l *limit) unanswered(flight float64) bool {
	if l.stood < l.begin {
		l.sound = l.at
	}
	if l.overdue = nearlyAll(l.late, l.ended) && !l.blind(); !l.overdue {
		l.respite = 0
	}
	return l.overdue && l.working >= round/2 && l.maySearch(flight)
}

// maySearch reports whether about as many in flight were not searched recently.
func (l *limit) maySearch(flight float64) bool {
	return l.at-l.clearAt >= max(memory, l.respite) || flight >= doubled*l.cleared
}

// note counts a request that ends after so many seconds.
func (l *limit) note(e *ending, took float64) {
	fresh := e.began >= l.begin
	if fresh {
		l.fresh++
	}
	if answered(e.outcome) {
		return
	}
	if fresh {
		l.lost++
	}
	// If its client hung up before any could have been answered, or if none was for a long time, it may have had no patience.
	if least := l.latency.least(); took >= least && (least > 0 || e.outcome == spillway.OutcomeTimedOut) {
		l.late++
	}
}

// nearlyAll reports whether so many are nearly all.
func nearlyAll(some, all int) bool { return float64(all-some) <= several*float64(all) }

// searches reports whether a first probe is a search: from its begin, or because nearly all of a turn of what it lets in is not
// answered.
func (l *limit) searches(turn bool) bool {
	l.search = l.search || turn && !l.before.limiting && nearlyAll(l.lost, l.fresh)
	return l.search && !l.bounded
}

// seek takes in a turn of a search: of requests that began with what is in flight now.
func (l *limit) seek() {
	_, rate := l.measured()
	l.some = l.some || l.served > 0 || l.drain.served > 0
	switch lost := float64(l.lost) > several*float64(l.fresh); {
	case l.up > 0 && (lost || rate < l.up/lean):
		l.bounded = true
		l.empty(l.window / doubled)
	case lost && l.window < stride && !l.some:
		l.open() // the backend is away: the next search loses nothing, either
	case lost && l.window < stride: // deadlines may be too short for the work
		l.respite = min(doubled*max(memory, l.respite), rarest)
		l.clear()
	case lost:
		l.empty(l.window / doubled)
	case l.held < l.begin:
		l.clear()
	default:
		l.up = rate
		l.window *= doubled
		l.restart()
	}
}

// grow takes the throughput of a round after a search.
func (l *limit) grow() {
	_, rate := l.measured()
	l.startup = l.held >= l.begin && rate > l.rate
	l.rate = max(l.rate, rate)
	l.lately, l.bdp = l.rate, l.rate*l.base
	l.resize()
}
