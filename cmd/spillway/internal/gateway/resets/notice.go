package resets

import (
	"fmt"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/admin/human"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/decisions"
)

// noticed is the rate of resets per second from which they are a notice. It is that of the alert in deploy/alerts.yaml.
const noticed = 1

// Minus returns how many connections were reset since there were d. A listener that was started
// again counts from 0.
func (c Counts) Minus(d Counts) Counts {
	if c.ConnectionRate < d.ConnectionRate || c.MaxConnections < d.MaxConnections || c.Peers < d.Peers || c.Overload < d.Overload {
		return c
	}
	return Counts{c.ConnectionRate - d.ConnectionRate, c.MaxConnections - d.MaxConnections, c.Peers - d.Peers, c.Overload - d.Overload}
}

// Notice returns a sentence about the connections that a listener has reset in some seconds, and why and
// what to do. It reports false if they are few.
func (c Counts) Notice(listener string, mongo bool, seconds float64) (headline, text string, ok bool) {
	total := c.Total()
	if total == 0 || float64(total) < noticed*seconds {
		return "", "", false
	}
	most, settings := Reason(0), settingsOf(listener, mongo)
	counts := c.all()
	for r, n := range counts {
		if n > counts[most] {
			most = Reason(r)
		}
	}
	why, share := settings[most], ""
	if most == Overload {
		why = most.String() // no setting asks for it
	}
	if counts[most] < total {
		share = fmt.Sprintf(" (%s of them)", human.Percent(float64(counts[most])/float64(total)))
	}
	headline = fmt.Sprintf("Listener %s resets connections: %s.", decisions.Clean(listener), human.PerSecond(float64(total)/seconds))
	text = fmt.Sprintf("The reason is %s%s. %s Clients get no answer; the lines \"connection reset\" of the log have their addresses.",
		why, share, advice[most])
	return headline, text, true
}
