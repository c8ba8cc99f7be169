package board

import (
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

// Times of the drill, in seconds.
const (
	demand15, demand30 = 12, 24
	classes            = 36
	halves, moved      = 48, 53
	kills              = 58
	crashed, drilled   = 77, 94
)

func at(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// load is the demand of one process in the drill.
func load(task int) []demand {
	skewed := func(from, limits float64) demand {
		return demand{at(from), limits * limit * uneven(task), spillway.Critical}
	}
	class, rate := spillway.Critical, 0.9*limit/10
	switch {
	case task >= 15:
		class, rate = spillway.Sheddable, 0.5*limit/5
	case task >= 10: // takes what CRITICAL leaves
		class, rate = spillway.SheddablePlus, 0.6*limit/5
	}
	first, second := 1.5*limit/10, 0.
	if task >= tasks/2 {
		first, second = second, first
	}
	return []demand{
		skewed(0, 0.8), skewed(demand15, 1.5), skewed(demand30, 3),
		{at(classes), rate, class},
		{at(halves), first, spillway.Critical}, {at(moved), second, spillway.Critical},
		skewed(kills, 3),
		{at(crashed - 1), 2 * limit / 15, spillway.Critical},
	}
}

// The drill: twenty processes, a server that is killed twice and comes back empty, and processes that
// crash.
func TestProcessDrill(t *testing.T) {
	if !*measure {
		t.Skip("takes 100 s, and needs an idle machine. Run with -measure")
	}
	s := newServer(t)
	p := newProcesses(t, s.addr, at(drilled), load)
	for _, outage := range [][2]float64{{60, 60.3}, {68, 71}} {
		p.sleep(at(outage[0]))
		s.kill()
		p.sleep(at(outage[1]))
		if err := s.start(); err != nil {
			t.Fatal(err)
		}
	}
	p.sleep(at(crashed))
	for _, cmd := range p.cmds[15:] {
		_ = cmd.Process.Kill()
	}
	p.done.Wait()
	p.checkDemand()
	p.checkFailures()
}

func (p *processes) checkDemand() {
	p.t.Helper()
	_, rejected := p.sum(at(4), at(demand15), 0)
	within(p.t, "demand 0.8: rejected", rejected[2]/limit, 0, 0)
	within(p.t, "demand 1.5", p.share(at(demand15+2), at(demand30)), 0.97, 1.01)
	within(p.t, "demand 3", p.share(at(demand30+2), at(classes)), 0.97, 1.01)
	admitted, rejected := p.sum(at(classes+3), at(halves), 0)
	within(p.t, "CRITICAL", admitted[2]/(admitted[2]+rejected[2]), 0.995, 1)
	within(p.t, "SHEDDABLE", admitted[0]/(admitted[0]+rejected[0]), 0, 0.005)
	after := 0.
	for ; after < 5; after += 0.1 {
		if admitted, _ := p.sum(at(moved+after), at(moved+after+0.1), tasks/2); admitted[2] >= 0.95*limit {
			break
		}
	}
	within(p.t, "seconds until 95 % of demand that has moved", after, 0, 0.7)
}

func (p *processes) checkFailures() {
	p.t.Helper()
	p.seconds("killed, back after 0.3 s", at(59.5), at(67), 0.85, 1.15)
	p.seconds("killed, back after 3 s", at(67.5), at(76), 0.85, 1.15)
	within(p.t, "5 of 20 crashed, until Grace", p.share(at(crashed), at(crashed+10)), 0.7, 1.02)
	within(p.t, "after Grace", p.share(at(crashed+13), at(drilled)), 0.96, 1.03)
}
