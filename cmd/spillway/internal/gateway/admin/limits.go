package admin

import (
	"fmt"
	"slices"
)

// A Limit is a limit that moves by itself: the in-flight limit of a gate, or one that is tuned.
type Limit struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"` // 0: it holds nothing back at present
	Least float64 `json:"least"` // its bounds in the configuration; 0: none
	Most  float64 `json:"most"`
	// Usual is the range of the middle half of its values of the last 15 minutes; nil for a limit that has not
	// been seen for long enough.
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
	// maxLimits is how many limits have a history: each is a chart.
	maxLimits = 12
	// usualTicks is how many seconds with a limit tell its usual range: with fewer, a limit that
	// adapts after a start would seem odd.
	usualTicks = 120
	// oddFactor is how far from its usual range a limit is odd. Load of a day moves it less.
	oddFactor = 10
	// newTicks are left out of the usual range, so that a change is compared with what was before.
	newTicks = meanTicks
)

// limitsOf returns the limits that move by themselves. Names are unique.
func limitsOf(l *Levels) (all []Limit) {
	several := make(map[string]int)
	for i := range l.Gates {
		several[l.Gates[i].Cluster]++
	}
	for i := range l.Gates {
		g := &l.Gates[i]
		if !g.Adaptive {
			continue
		}
		name := g.Cluster + " in flight"
		if several[g.Cluster] > 1 {
			name += " from " + g.Listener
		}
		all = append(all, Limit{Name: name, Value: g.Limit, Least: g.Least, Most: g.Most})
	}
	for i := range l.Tuned {
		t := &l.Tuned[i]
		all = append(all, Limit{Name: t.Name, Value: t.Value, Least: t.Least, Most: t.Most})
	}
	return all[:min(len(all), maxLimits)]
}

// limits returns the limits with their usual ranges.
func (s *sampler) limits(l *Levels) []Limit {
	all := limitsOf(l)
	for i := range all {
		x := &all[i]
		x.Usual = s.usual(x.Name)
		x.Odd = x.Usual != nil && x.Value > 0 && (x.Value > oddFactor*x.Usual.High || x.Value < x.Usual.Low/oddFactor)
	}
	return all
}

// usual returns the range of the middle half of the values of a limit, without the latest: the
// minutes after a start do not widen it. Seconds in which the limit held nothing back do not count.
func (s *sampler) usual(name string) *Usual {
	var values []float64
	for i := range s.rows[:max(0, len(s.rows)-newTicks)] {
		if v := s.rows[i].Limits[name]; v > 0 {
			values = append(values, v)
		}
	}
	if len(values) < usualTicks {
		return nil
	}
	slices.Sort(values)
	return &Usual{Low: values[len(values)/4], High: values[len(values)-1-len(values)/4]}
}

// oddLimits returns a notice for each limit that has left its usual range.
func oddLimits(all []Limit) (notices []Notice) {
	for i := range all {
		x := &all[i]
		if !x.Odd {
			continue
		}
		far, look := "above", "Its load or its service has changed: look for what happened when the chart of the limit rose."
		if x.Value < x.Usual.Low {
			far, look = "below", "It admits much less: look for what became slow when the chart of the limit fell. A least value in the configuration keeps it higher."
		}
		notices = append(notices, Notice{
			fmt.Sprintf("The limit %s is far %s its usual range.", x.Name, far),
			fmt.Sprintf("It is %s, and was mostly %s to %s in the last 15 minutes. %s", grouped(x.Value), grouped(x.Usual.Low), grouped(x.Usual.High), look),
		})
	}
	return notices
}
