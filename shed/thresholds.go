package shed

import (
	"fmt"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/invalid"
)

// ramp is the span of utilization over which a class goes from served to rejected, and the
// distance below its threshold at which it is served in full again. If thresholds are at
// least this far apart, a class is rejected only after all lower ones are rejected entirely.
const ramp = 0.05

// DefaultThresholds are the utilizations from which each class, from
// [spillway.Sheddable] up, begins to be rejected. The
// highest class begins at 1, the target.
var DefaultThresholds = [spillway.Criticalities]float64{0.80, 0.87, 0.95, 1.00}

func checkThresholds(t [spillway.Criticalities]float64) error {
	for i, v := range t {
		if !(v > ramp && v <= 100) {
			return invalid.Field("shed", fmt.Sprintf("Thresholds[%d]", i), v, "above %v and at most 100", ramp)
		}
		if i > 0 && v < t[i-1]+ramp-1e-9 {
			return invalid.Field("shed", fmt.Sprintf("Thresholds[%d]", i), v, "at least %v above that of the class below (%v)", ramp, t[i-1])
		}
	}
	return nil
}

// levels is the share of each class that is rejected because of utilization. A share rises
// over the ramp that begins at the threshold, and falls over the ramp that ends below it. In
// between it does not change: with this hysteresis noise in the signal has no effect.
type levels [spillway.Criticalities]float64

func (l *levels) set(utilization float64, thresholds *[spillway.Criticalities]float64) {
	if utilization <= thresholds[0]-ramp {
		*l = levels{}
		return
	}
	for i, t := range thresholds {
		rising := min(max((utilization-t)/ramp, 0), 1)
		falling := min(max((utilization-t)/ramp+1, 0), 1)
		l[i] = min(max(l[i], rising), falling)
	}
}
