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

// advise passes on to the throttle of a caller what an answer said, as package egress does.
func (e *edge) advise(c *call, a reply, ratio shed.Ratio) {
	o := e.clients[c.client].active
	if e.config.Egress.ThrottleMode == spillway.Off || ratio == shed.RatioOne && (o.throttle == nil || a != served) {
		return
	}
	o.remember()
	o.throttle.Advise(e.at(c.started), c.call.Criticality, ratio.Float())
}
