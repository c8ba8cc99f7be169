package load

import "time"

// The service is back once the share of calls that are answered in time was at
// least RecoveryShare in every window of RecoveryWindow for RecoveryHold on end;
// the recovery then took until the first of these windows began. Windows are laid
// out from the end of the step. A window in which no call was to be sent is as
// good as any.
const (
	RecoveryWindow = 250 * time.Millisecond
	RecoveryHold   = time.Second
	RecoveryShare  = 0.95
)

// Recovery returns how long the service took to be back, and whether it was, from the calls of
// each window after the step, which it asks for in their order.
func Recovery(windows int, calls func(window int) (offered, answered int)) (time.Duration, bool) {
	const hold = int(RecoveryHold / RecoveryWindow)
	held := 0
	for w := range windows {
		held++
		if offered, answered := calls(w); float64(answered) < RecoveryShare*float64(offered) {
			held = 0
		}
		if held == hold {
			return time.Duration(w+1-hold) * RecoveryWindow, true
		}
	}
	return 0, false
}
