package slow

import (
	"cmp"
	"fmt"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/admin/human"
)

// Subject names the route of a notice.
func (s *Slow) Subject() string {
	return fmt.Sprintf("%s %s of %s", s.Listener, cmp.Or(s.Route.Route, "/"), s.Cluster)
}

// Notice returns a sentence about the route, and where its requests wait and what to do.
func (s *Slow) Notice() (headline, text string) {
	where := fmt.Sprintf("They wait %s of the time for the upstream: look at its log, its processors and the services that it calls.", human.Percent(1-s.Waited))
	if s.Waited > 0.5 {
		where = fmt.Sprintf("They wait %s of the time here, before they are sent: see /debug/queues. Add capacity, or have clients send less.",
			human.Percent(s.Waited))
	}
	headline = fmt.Sprintf("Requests are slow: route %s of %s takes %s, usually at most %s.",
		cmp.Or(s.Route.Route, "/"), s.Cluster, words(s.Now), words(s.Usual))
	return headline, fmt.Sprintf("There were %s in the last 10 s; a tenth of them took that long or longer. %s "+
		"Without a deadline no request is late: see routes[].timeout.", human.Counted(int(s.Answers), "answer"), where)
}

func words(d time.Duration) string { return human.Duration(float64(d) / float64(time.Millisecond)) }
