// Package finite makes figures fit for JSON, which has no infinity and no NaN.
package finite

import "math"

// Number returns v, or 0 if v is infinite or NaN.
func Number(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}
