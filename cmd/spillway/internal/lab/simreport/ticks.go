package simreport

import "math"

// ticks returns at most six round times from 0 to length.
func ticks(length float64) (all []float64) {
	if length <= 0 {
		return []float64{0}
	}
	step := math.Pow10(int(math.Floor(math.Log10(length))) - 1)
	for _, factor := range []float64{2, 2.5, 2} { // 1, 2, 5, 10
		if length/step > 5 {
			step *= factor
		}
	}
	for n := 0.0; n*step <= length; n++ {
		all = append(all, n*step)
	}
	return all
}
