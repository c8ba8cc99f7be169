package admin

import "time"

// beat is the interval at which the clock is read to find stalls. At 20 times per second the
// cost for an idle process is negligible.
const beat = 50 * time.Millisecond

// stall returns how long this process was runnable but did not run, of the time between two
// beats. A delay up to a quarter of a beat is not a stall: timers on a busy host are not more exact.
func stall(passed time.Duration) time.Duration {
	if late := passed - beat; late > beat/4 {
		return late
	}
	return 0
}
