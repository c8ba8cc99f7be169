// Package forecast says which requests mode enforce would reject.
package forecast

import (
	"fmt"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin/human"
)

// Figures are rates per second, over some seconds. Their names in JSON are as in the figures of a proxy.
type Figures struct {
	Seconds float64                         `json:"seconds"`
	Offered float64                         `json:"offered"`
	Would   [spillway.Criticalities]float64 `json:"would_reject"` // by gates in observe mode
	Ended   [spillway.Criticalities]float64 `json:"ended"`        // with any outcome
}

// Words says what mode enforce would reject, as gates in observe mode have counted it. The mode is that of now.
func (f *Figures) Words(mode spillway.Mode) string {
	last, would := fmt.Sprintf("In the last %.0f s", f.Seconds), 0.0
	judged := f.Ended
	for class, n := range f.Would {
		would += n
		judged[class] = max(judged[class], n) // what has not ended was judged all the same
	}
	switch {
	case mode == spillway.ModeOff:
		return "In mode off nothing is counted: set mode observe to see what mode enforce would reject."
	case f.Offered == 0 && would == 0:
		return last + " no requests came: what mode enforce would reject is unknown."
	case would == 0:
		return fmt.Sprintf("%s gates in observe mode would have rejected none of %s.", last, human.PerSecond(f.Offered))
	}
	offered := max(f.Offered, would)
	return fmt.Sprintf("%s gates in observe mode would have rejected %s of %s: %s. "+
		"In an overload these counts are too high: while nothing is rejected, the overload lasts.",
		last, human.Percent(would/offered), human.PerSecond(offered), human.ClassShares(f.Would, judged))
}
