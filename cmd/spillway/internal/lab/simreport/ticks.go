package simreport

// ticks returns at most six round times from 0 to length.
func ticks(length float64) (all []float64) {
	if length <= 0 {
		return []float64{0}
	}
	step := round(length/5, 1, 2, 5)
	for n := 0.0; n*step <= length; n++ {
		all = append(all, n*step)
	}
	return all
}
