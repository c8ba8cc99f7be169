package drill

import (
	"slices"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/load"
)

const ms = time.Millisecond

// windows returns twenty calls for each recovery window after end; answered is the number
// of good calls in each.
func windows(end time.Duration, answered ...int) []record {
	var all []record
	for w, n := range answered {
		for i := range 20 {
			r := record{arrival: arrival{at: end + time.Duration(w)*load.RecoveryWindow + time.Duration(i)*ms}, outcome: timedOut}
			if i < n {
				r.outcome = good
			}
			all = append(all, r)
		}
	}
	return all
}

func TestRecovery(t *testing.T) {
	const never = -1 * ms
	for _, row := range []struct {
		name     string
		answered []int // of 20 per window
		want     time.Duration
	}{
		{"at once", []int{20, 20, 20, 20}, 0},
		{"19 of 20 are enough", []int{19, 19, 19, 19}, 0},
		{"18 of 20 are not", []int{18, 20, 20, 20, 20}, 250 * ms},
		{"later", []int{0, 0, 10, 20, 20, 20, 20, 0}, 750 * ms},
		{"a relapse starts anew", []int{20, 20, 20, 0, 20, 20, 20, 20}, 1000 * ms},
		{"not held long enough", []int{0, 20, 20, 20}, never},
		{"not at all", []int{0, 0, 0, 0, 0, 0, 0, 0}, never},
		{"the phase is too short", []int{20, 20, 20}, never},
	} {
		const end = 12 * time.Second
		until := end + time.Duration(len(row.answered))*load.RecoveryWindow
		got, ok := recovery(windows(end, row.answered...), end, until)
		if !ok {
			got = never
		}
		if got != row.want {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
}

func TestRecoveryWithoutCallsInAWindow(t *testing.T) {
	calls := windows(0, 0, 20, 20, 20, 20)
	calls = slices.DeleteFunc(calls, func(r record) bool { return r.at/load.RecoveryWindow == 2 })
	if got, ok := recovery(calls, 0, 5*load.RecoveryWindow); !ok || got != load.RecoveryWindow {
		t.Errorf("recovery = %v, %v; want %v", got, ok, load.RecoveryWindow)
	}
}

// allOutcomes is a run of 3 s with one call of each outcome in every phase, and
// enough good ones in the step for a 99th percentile.
func allOutcomes() ([]record, []Phase) {
	phases := []Phase{{PhaseCalm, 0, 1, 0.5, 50}, {PhaseStep, 1, 2, 10, 1000}, {PhaseRecovery, 2, 3, 0.5, 50}}
	var all []record
	for phase := range time.Duration(3) {
		for o := good; o <= unfinished; o++ {
			at := phase*time.Second + time.Duration(o)*ms
			all = append(all, record{arrival: arrival{at: at}, sent: at + ms, done: at + 5*ms, attempts: 2, outcome: o})
		}
		for i := range time.Duration(MinSamplesP99 - 1) {
			if phase != 1 {
				break
			}
			at := time.Second + 100*ms + i*ms/2
			all = append(all, record{arrival: arrival{at: at}, sent: at, done: at + i*ms/10, attempts: 1, outcome: good})
		}
	}
	return all, phases
}

func TestSummary(t *testing.T) {
	records, phases := allOutcomes()
	run := summary(records, newProbe(nil, 3*time.Second), &Settings{Phases: phases}, 500, 3*time.Second)

	for _, p := range run.Phases {
		want := Counts{Offered: 9, Goodput: 1, Late: 1, RejectedLocal: 2, RejectedThrottle: 1, RejectedInFlight: 1,
			RejectedByBackend: 1, TimedOut: 1, Failed: 1, DroppedSends: 1, Unfinished: 1, Attempts: 18, Retries: 9}
		if p.Name == PhaseStep {
			want.Offered += 999
			want.Goodput += 999
			want.Attempts += 999
		}
		if p.Counts != want {
			t.Errorf("%s: %+v, want %+v", p.Name, p.Counts, want)
		}
	}
	if run.Counts != run.Phases[1].Counts {
		t.Errorf("the counts of the run are %+v, not those of the step", run.Counts)
	}
	if run.GoodputRPS != 1000 || run.GoodputRatio != 2 || run.Samples != 1000 {
		t.Errorf("goodput %v/s, ratio %v of %d samples; want 1000/s, 2, 1000", run.GoodputRPS, run.GoodputRatio, run.Samples)
	}
	if *run.P50MS != 49.8 || *run.P99MS != 98.8 {
		t.Errorf("p50 %v, p99 %v; want 49.8, 98.8", *run.P50MS, *run.P99MS)
	}
	if want := float64(18+999) / 1008; run.AttemptsPerCall != want {
		t.Errorf("attempts per call %v, want %v", run.AttemptsPerCall, want)
	}
	if run.LatenessP50MS != 0 || run.LatenessP99MS != 1 {
		t.Errorf("lateness p50 %v, p99 %v; want 0, 1", run.LatenessP50MS, run.LatenessP99MS)
	}
	if run.RecoverS != nil {
		t.Errorf("recovered in %v s with one good call of nine", *run.RecoverS)
	}
}

func TestSummaryClaimsNoP99OfFewSamples(t *testing.T) {
	records, phases := allOutcomes()
	i := slices.IndexFunc(records, func(r record) bool { return r.at > 1100*ms })
	run := summary(slices.Delete(records, i, i+1), newProbe(nil, 3*time.Second), &Settings{Phases: phases}, 500, 3*time.Second)
	if run.P99MS != nil || run.P50MS == nil {
		t.Errorf("with %d samples: p50 %v, p99 %v; want only the former", run.Samples, run.P50MS, run.P99MS)
	}
}

// The series adds up to the counts, however the run was cut short.
func TestSeriesAddsUp(t *testing.T) {
	records, phases := allOutcomes()
	for _, length := range []time.Duration{3 * time.Second, 2*time.Second + 100*ms, 1500 * ms, 100 * ms} {
		reached := between(records, 0, length)
		run := summary(reached, newProbe(nil, 3*time.Second), &Settings{Phases: phases}, 500, length)
		var total Counts
		for _, p := range run.Phases {
			total.Offered += p.Offered
			total.Goodput += p.Goodput
			total.RejectedLocal += p.RejectedLocal
		}
		s := run.Series
		if got := sum(s.Offered); got != total.Offered || got != len(reached) {
			t.Errorf("%v: offered %d in the series, %d in the phases, %d calls", length, got, total.Offered, len(reached))
		}
		if sum(s.Goodput) != total.Goodput || sum(s.RejectedLocal) != total.RejectedLocal {
			t.Errorf("%v: the series differs from the phases", length)
		}
		if n := int((length + slotLength - 1) / slotLength); len(s.T) != n || len(s.Offered) != n || len(s.P99MS) != n || len(s.InFlight) != n {
			t.Errorf("%v: series of %d slots, want %d", length, len(s.T), n)
		}
	}
}

func sum(counts []int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

func TestSummaryOfARunCutShort(t *testing.T) {
	records, phases := allOutcomes()
	half := summary(between(records, 0, 1500*ms), newProbe(nil, 3*time.Second), &Settings{Phases: phases}, 500, 1500*ms)
	if want := float64(half.Goodput) / 0.5; half.GoodputRPS != want {
		t.Errorf("goodput in half a step of 1 s is %v/s, want %v/s", half.GoodputRPS, want)
	}
	before := summary(between(records, 0, 500*ms), newProbe(nil, 3*time.Second), &Settings{Phases: phases}, 500, 500*ms)
	if before.GoodputRPS != 0 || before.P50MS != nil || before.RecoverS != nil {
		t.Errorf("a run cut short before the step claims %+v", before)
	}
}
