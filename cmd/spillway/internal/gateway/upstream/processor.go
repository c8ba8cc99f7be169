package upstream

import (
	"errors"
	"math"
	"sync"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/message"
)

// processor adds up the time that the processors of the endpoints work for the requests of this
// proxy, by their load reports. A report counts for the time since the last one of that endpoint. If
// the report has the number of requests per second, and other clients send some of them, their part is
// left out. It is safe for concurrent use.
type processor struct {
	mu      sync.Mutex // of the last readings of endpoints, too
	seconds float64
}

// A reading is what was known of an endpoint at its last report. The zero reading is of no report.
type reading struct {
	at       time.Time
	attempts uint64
}

// maxUtilization is the highest cpu_utilization that counts. Endpoints may use more than they are
// assigned, but a thousand times as much is a mistake.
const maxUtilization = 1000

var errNoReport = errors.New("an endpoint has sent no cpu_utilization lately")

func (p *processor) report(now time.Time, x *endpoint, r message.LoadReport) {
	if !(r.CPU > 0) || r.CPU > maxUtilization {
		return // the endpoint does not report its utilization
	}
	attempts := x.total.Load()
	p.mu.Lock()
	defer p.mu.Unlock()
	last := x.reported
	x.reported = reading{now, attempts}
	passed := now.Sub(last.at) // long, if there was no report
	if passed <= 0 || passed > config.CostInterval {
		return
	}
	part, requests := 1., r.RPS*passed.Seconds()
	if requests > 0 {
		part = min(1, float64(attempts-last.attempts)/requests)
	}
	p.seconds += r.CPU * passed.Seconds() * part
}

// total returns the time of all endpoints, or an error if one that has got requests has not reported
// since: then what is known is not the whole.
func (p *processor) total(now time.Time, all []*endpoint) (time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range all {
		last, attempts := x.reported, x.total.Load()
		if attempts > 0 && attempts != last.attempts && now.Sub(last.at) > config.CostInterval {
			return 0, errNoReport
		}
	}
	return time.Duration(min(p.seconds*float64(time.Second), math.MaxInt64/2)), nil
}

// Processor returns the time that the processors of the endpoints have worked for this proxy, or an error
// while an endpoint sends no reports. Only differences between two values mean something.
func (x *Cluster) Processor() (time.Duration, error) {
	return x.work.total(time.Now(), x.current.Load().endpoints.all)
}
