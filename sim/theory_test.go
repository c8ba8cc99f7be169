package sim

import (
	"math"
	"testing"
	"time"

	"github.com/seed90641741/spillway/internal/race"
)

// Queues are as the theory says: the response time of M/M/1 is exponential with the
// mean 1/(μ−λ).
func TestQueueingTheory(t *testing.T) {
	for name, row := range map[string]struct {
		cpu      Dist
		p50, p99 time.Duration
	}{
		"M/M/1":               {Exponential(ms), 3466 * time.Microsecond, 23026 * time.Microsecond},
		"no queue, no spread": {Constant(10 * time.Microsecond), 10 * time.Microsecond, 10 * time.Microsecond},
	} {
		c := server(800)
		c.Duration, c.Services[0].CPU, c.Clients[0].Call.Latency = 400*time.Second, row.cpu, Dist{}
		w := run(t, c).Clients[0].Windows[0]
		for _, q := range []struct {
			got  *float64
			want time.Duration
		}{{w.P50MS, row.p50}, {w.P99MS, row.p99}} {
			if want := q.want.Seconds() * 1e3; math.Abs(*q.got-want) > 0.05*want+0.001 {
				t.Errorf("%s: %v ms, want %v", name, *q.got, want)
			}
		}
		if w.Success < 0.9999 || math.Abs(w.GoodputRPS-800) > 10 {
			t.Errorf("%s: %+v", name, w)
		}
	}
}

// The mean time in M/M/1, M/D/1, M/G/1 and M/M/c is as the formulas of Pollaczek and
// Khinchine and of Erlang say.
func TestMeanTimes(t *testing.T) {
	race.SkipOneGoroutine(t)
	const work = 1e-3 // s
	for name, row := range map[string]struct {
		cpu        Dist
		processors int
		load       float64
		spread     float64 // squared, of the work, over its mean squared
	}{
		"M/M/1": {Exponential(ms), 1, 0.8, 1},
		"M/D/1": {Constant(ms), 1, 0.8, 0},
		"M/U/1": {Uniform(0, 2*ms), 1, 0.7, 1.0 / 3},
		"M/M/4": {Exponential(ms), 4, 0.85, 1},
		"M/M/9": {Exponential(ms), 9, 0.9, 1},
	} {
		c := server(row.load * float64(row.processors) / work)
		c.Duration = time.Duration(800/row.processors) * time.Second
		c.Clients[0].Deadline, c.Clients[0].Call.Latency = 0, Dist{}
		c.Services[0].CPU, c.Services[0].Processors = row.cpu, row.processors
		s, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		sum, n := 0.0, 0.0
		s.witness.replied = func(r *request) { sum, n = sum+seconds(s.now-r.task.Sim.calls[r.caller.id].intended), n+1 }
		if _, err := s.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		free := float64(row.processors) * (1 - row.load) / work // per second
		want := work + erlangC(row.processors, row.load)/free*(1+row.spread)/2
		if got := sum / n; math.Abs(got/want-1) > 0.04 {
			t.Errorf("%s: mean %.3f ms, want %.3f", name, got*1e3, want*1e3)
		}
	}
}

// erlangC is the probability of having to wait for one of n processors.
func erlangC(n int, load float64) float64 {
	blocked := 1.0 // Erlang's B, by recursion
	for i := 1; i <= n; i++ {
		a := load * float64(n) * blocked
		blocked = a / (float64(i) + a)
	}
	return blocked / (1 - load*(1-blocked))
}

func TestUtilizationIsLoadTimesWork(t *testing.T) {
	v := run(t, server(600)).Services[0].Windows[0]
	if math.Abs(v.Utilization-0.6) > 0.01 || math.Abs(v.LoadRatio-0.6) > 0.01 {
		t.Errorf("%+v", v)
	}
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }
