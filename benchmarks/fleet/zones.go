package main

import (
	"errors"
	"slices"
	"time"
)

// zones is a service in four zones, with a board in each. 70 % of the demand comes to one of them,
// and moves to another. Once per period a control over all zones divides the limit again, by the
// demand of each; zero means never.
func zones(name string, period time.Duration) *scenario {
	const moved = 40 * second
	return &scenario{
		Name: name, Demand: 1.5, Zones: 4, End: 80 * second,
		Spans: []span{{"", 32 * second, moved}, {"30 s after a move", moved, moved + 30*second}, {"later", moved + 32*second, 80 * second}},
		Load: func(w *world, i int) float64 {
			busy, part := 0, 0.1
			if w.now >= moved {
				busy = 3
			}
			if i*w.Zones/w.Tasks == busy {
				part = 0.7
			}
			return part * float64(w.Zones) / float64(w.Tasks)
		},
		Events: func(w *world) {
			if period > 0 && w.now > 0 && w.now%period == 0 {
				w.divide(period)
			}
		},
	}
}

// divide gives each zone its demand up to a common level, and an equal part of the rest.
func (w *world) divide(period time.Duration) {
	order := make([]int, w.Zones)
	for zone := range order {
		order[zone] = zone
		w.offered[zone] /= period.Seconds()
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(w.offered[a] - w.offered[b]) })
	parts, left := make([]float64, w.Zones), w.Limit
	for i, zone := range order {
		parts[zone] = min(w.offered[zone], left/float64(w.Zones-i))
		left -= parts[zone]
	}
	for _, k := range w.tasks {
		w.err = errors.Join(w.err, k.fleet.Update(w.config(parts[k.zone]+left/float64(w.Zones))))
	}
	clear(w.offered)
}
