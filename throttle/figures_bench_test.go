package throttle_test

import "testing"

// BenchmarkFigures shows figures of the rule in virtual time. They are the same on each machine, and
// depend on the seeds. Each comment has the band that a change should stay in.
//
//	go test -run '^$' -bench Figures -benchtime 1x ./throttle
func BenchmarkFigures(b *testing.B) {
	b.Run("recovery", benchmarkRecovery)
	b.Run("one task of four", benchmarkOneTaskOfFour)
	b.Run("one busy client", benchmarkOneBusyClient)
	b.Run("flapping", benchmarkFlapping)
}

// As a rule 99 % of the calls are sent within 5 s and 16 times what a call takes, whatever happened
// before: a second for a probe, some round trips for the ramp, a second of accepts, and some round
// trips more. It takes longer where so few calls were accepted that the limit is below one per
// second. Band of the recoveries that take longer: 0 to 2 %.
func benchmarkRecovery(b *testing.B) {
	const seeds = 300
	late := 0
	for b.Loop() {
		late = 0
		for seed := range uint64(seeds) {
			if took, most, text := recovery(b, seed); took > most {
				late++
				b.Logf("seed %d: %v s, want %.1f:%s", seed, took, most, text)
			}
		}
	}
	b.ReportMetric(100*float64(late)/seeds, "late-%")
}

// Runs in which fewer calls are sent soon: of 99 % where the task rejects the calls above its
// capacity, and of 95 % where it is dead. In some runs the limit is of few calls per second, and
// follows the accepts with the time constant of the window. Bands: 0 to 1 % and 0 to 15 %.
func benchmarkOneTaskOfFour(b *testing.B) {
	const seeds = 100
	var weak, dead int
	for b.Loop() {
		weak, dead = below(afterOneRejectsOn(b, seeds), 0.99), below(afterOneIsDead(b, seeds), 0.95)
	}
	b.ReportMetric(100*float64(weak)/seeds, "weak-%")
	b.ReportMetric(100*float64(dead)/seeds, "dead-%")
}

// Shares of the capacity that are sent and served in the overload, and of the calls that are served
// after it, with K = 1.1. Bands: at most 120 %, at least 98 % and at least 80 %.
func benchmarkOneBusyClient(b *testing.B) {
	const seeds = 3 // one alone is noisy
	var overload, after second
	for b.Loop() {
		overload, after = second{}, second{}
		for seed := range uint64(seeds) {
			one, then := oneBusyClient(b, seed)
			overload, after = sum([]second{overload, one}), sum([]second{after, then})
		}
	}
	b.ReportMetric(100*overload.sent/seeds/60/capacity, "sent-%")
	b.ReportMetric(100*overload.served/seeds/60/capacity, "served-%")
	b.ReportMetric(100*after.served/after.offered, "served-after-%")
}

// The share of what a backend can serve that is served. Band: at least 60 % with each period.
func benchmarkFlapping(b *testing.B) {
	const seeds = 3
	for _, period := range periods {
		b.Run(period.String(), func(b *testing.B) {
			served := 0.0
			for b.Loop() {
				served = 0
				for seed := range uint64(seeds) {
					_, one := upAndDown(b, seed, period)
					served += one / seeds
				}
			}
			b.ReportMetric(100*served, "served-%")
		})
	}
}
