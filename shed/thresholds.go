package shed

import (
	"fmt"

	"github.com/seed90641741/spillway"
)

// ramp is over which span of utilization a class goes from served to refused,
// and how far below its threshold it is served in full again. Thresholds that
// are at least this far apart refuse no class before all lower ones are refused
// entirely.
const ramp = 0.05

// DefaultThresholds are the utilizations from which each class, from
// [spillway.Sheddable] up, begins to be refused. At 1, the target, the highest
// class begins.
var DefaultThresholds = [spillway.Criticalities]float64{0.80, 0.87, 0.95, 1.00}

func checkThresholds(t [spillway.Criticalities]float64) error {
	for i, v := range t {
		if !(v > ramp && v <= 100) {
			return fmt.Errorf("shed: Thresholds[%d] is %v, must be above %v and at most 100", i, v, ramp)
		}
		if i > 0 && v < t[i-1]+ramp-1e-9 {
			return fmt.Errorf("shed: Thresholds[%d] is %v, must be at least %v above Thresholds[%d] (%v)", i, v, ramp, i-1, t[i-1])
		}
	}
	return nil
}

// levels is the share of each class that is refused for its utilization. A share
// rises along one ramp, which begins at the threshold, and falls along another,
// which ends a ramp below it; in between it stays where it was. That hysteresis
// keeps a signal that trembles around a threshold from switching a class on and
// off.
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
