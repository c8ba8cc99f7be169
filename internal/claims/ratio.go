package claims

import (
	"strconv"
	"strings"
)

// maxRatioBytes is how long a ratio may be as text: none that is sent has more
// than 4 bytes, and a longer one is not worth reading.
const maxRatioBytes = 16

// Ratio returns the greatest number from 0 to 1 that values name: of several, the
// one that makes the least difference counts. What is no such number says nothing.
func Ratio(values []string) (ratio float64, ok bool) {
	for _, text := range values {
		text = strings.TrimSpace(text)
		if len(text) > maxRatioBytes {
			continue
		}
		if v, err := strconv.ParseFloat(text, 64); err == nil && v >= 0 && v <= 1 && (!ok || v > ratio) {
			ratio, ok = v, true
		}
	}
	return ratio, ok
}
