package load

import (
	"math"
	"slices"
	"time"

	"github.com/seed90641741/spillway"
)

// Quantile returns the smallest sample that at least the share q of all samples
// do not exceed, in milliseconds, and nil without samples. It sorts samples.
func Quantile(samples []time.Duration, q float64) *float64 {
	if len(samples) == 0 {
		return nil
	}
	slices.Sort(samples)
	rank := int(math.Ceil(q * float64(len(samples))))
	return new(float64(samples[max(rank, 1)-1]) / float64(time.Millisecond))
}

// ClassOf returns the class at the share at of a mix, from 0 to below 1. The mix says in proportion
// how many requests each class has, from the lowest class up.
func ClassOf(mix []float64, at float64) spillway.Criticality {
	total, last := 0.0, 0
	for _, share := range mix {
		total += share
	}
	x := at * total
	for i, share := range mix {
		if share > 0 {
			last = i
		}
		if x < share {
			break
		}
		x -= share
	}
	return spillway.Sheddable + spillway.Criticality(last)
}
