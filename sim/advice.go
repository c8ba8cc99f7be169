package sim

import (
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/shed"
)

// lookEvery is how often a task looks at its accept ratios, as in package ingress.
const lookEvery = 10 * time.Millisecond

// accepting are the accept ratios of a task.
type accepting struct {
	looked time.Time
	of     [spillway.Criticalities]shed.AcceptRatio
	ratios [spillway.Criticalities]shed.Ratio
}

// ratio returns the accept ratio of a class at the time now.
func (g *gates) ratio(now time.Time, c spillway.Criticality) shed.Ratio {
	a := &g.accepting
	if now.Sub(a.looked) >= lookEvery {
		a.looked = now
		for i, s := range g.shed.Stats().Classes {
			a.ratios[i] = a.of[i].Observe(now, s.AdmittedTotal+s.RefusedTotal, s.RefusedTotal)
		}
	}
	return a.ratios[c.Index()]
}
