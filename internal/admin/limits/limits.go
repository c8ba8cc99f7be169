// Package limits reports whether a limit that moves by itself has left its usual range.
package limits

import (
	"fmt"
	"slices"

	"github.com/seed90641741/spillway/internal/admin/human"
)

// A Limit is a limit that moves by itself: the in-flight limit of a gate, or one that is tuned.
type Limit struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"` // 0: it holds nothing back at present
	Least float64 `json:"least"` // its bounds in the configuration; 0: none
	Most  float64 `json:"most"`
	// Usual is the range of the middle half of its values of the last 15 minutes; nil for a
	// limit that has not been seen for long enough.
	Usual *Usual `json:"usual"`
	// Odd is set when the value has left the usual range by a factor of ten.
	Odd bool `json:"odd"`
}

// Usual is a range of values.
type Usual struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

const (
	// Most is how many limits have a history: each is a chart.
	Most = 12
	// usualTicks is how many seconds with a limit tell its usual range: with fewer, a limit that
	// adapts after a start would seem odd.
	usualTicks = 120
	// oddFactor is how far from its usual range a limit is odd. Load of a day moves it less.
	oddFactor = 10
)

// Compare sets Usual and Odd from earlier values, one per second. It takes the middle half of
// them: the minutes after a start do not widen it. It sorts values, and skips values of seconds in
// which the limit held nothing back.
func (x *Limit) Compare(values []float64) {
	values = slices.DeleteFunc(values, func(v float64) bool { return v <= 0 })
	if len(values) < usualTicks {
		return
	}
	slices.Sort(values)
	u := &Usual{Low: values[len(values)/4], High: values[len(values)-1-len(values)/4]}
	x.Usual, x.Odd = u, x.Value > 0 && (x.Value > oddFactor*u.High || x.Value < u.Low/oddFactor)
}

// Notice describes a limit that is odd.
func (x *Limit) Notice() (headline, text string) {
	far, look := "above", "Its load or its service has changed: look for what happened when the chart of the limit rose."
	if x.Value < x.Usual.Low {
		far, look = "below", "It admits much less: look for what became slow when the chart of the limit fell. A least value in the configuration keeps it higher."
	}
	return fmt.Sprintf("The limit %s is far %s its usual range.", x.Name, far),
		fmt.Sprintf("It is %s, and was mostly %s to %s in the last 15 minutes. %s",
			human.Grouped(x.Value), human.Grouped(x.Usual.Low), human.Grouped(x.Usual.High), look)
}
