package slow

import (
	"cmp"
	"fmt"
	"time"

	"github.com/seed90641741/spillway/internal/admin/human"
)

// Notice returns a sentence about the route, and where its requests wait and what to do.
func (s *Slow) Notice() (headline, text string) {
	where := fmt.Sprintf("They wait %s of it for the upstream: look at its log, its processors and the services that it calls.", human.Percent(1-s.Waited))
	if s.Waited > 0.5 {
		where = fmt.Sprintf("They wait %s of it here, before they are sent: see /debug/queues. Add capacity, or have clients send less.", human.Percent(s.Waited))
	}
	others := ""
	if s.Others > 0 {
		others = " and " + human.Counted(s.Others, "other route")
	}
	headline = fmt.Sprintf("Requests are slow: route %s%s of %s: %s, usually at most %s.",
		cmp.Or(s.Route.Route, "/"), others, s.Cluster, words(s.Now), words(s.Usual))
	return headline, fmt.Sprintf("A tenth of the last %s took that time or longer. %s With routes[].timeout they would be late.",
		human.Counted(int(s.Answers), "answer"), where)
}

func words(d time.Duration) string { return human.Duration(float64(d) / float64(time.Millisecond)) }
