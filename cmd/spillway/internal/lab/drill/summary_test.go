package drill

import (
	"strings"
	"testing"
)

func summaryOf(t *testing.T, r *Result) string {
	t.Helper()
	var b strings.Builder
	if err := r.WriteSummary(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestSummaryText(t *testing.T) {
	const want = `A backend that can answer 641 calls/s gets 6400/s for 8 s. A bar is 0.5 s; █ is the capacity.

answered in time     calm     overload         recovery      in the overload
  offered            ▄▄▄▄▄▄▄▄ ▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄ ▄▄▄▄▄▄▄▄▄▄▄▄    6400/s
  without Spillway   ········ ················ ············       9/s, 1 % of the capacity
  with Spillway      ········ ················ ▄▄▄▄▄▄▄▄▄▄▄▄     639/s, 100 % of the capacity
calls/s by class       CRITICAL_PLUS        CRITICAL  SHEDDABLE_PLUS       SHEDDABLE
  offered                       1604            1604            1604            1604
  without Spillway                 2               2               2               2
  with Spillway                  639               0               0               0

PASS  goodput, recovery, retries, sent, generator
`
	if got := summaryOf(t, sample()); got != want {
		t.Errorf("the summary is\n%swant\n%s", got, want)
	}
}

// However a drill ends, it says so in few lines.
func TestSummaryIsShort(t *testing.T) {
	for name, change := range map[string]func(*Result){
		"all fail": func(r *Result) {
			*r.With = Run{AttemptsPerCall: 9, Counts: Counts{Offered: 100, Attempts: 100}, Phases: r.With.Phases, Classes: r.With.Classes, Series: r.With.Series}
			r.With.Phases[0].DroppedSends = 9000
		},
		"a long step":          func(r *Result) { r.Settings.Phases[2].End = 600 },
		"a retry storm":        func(r *Result) { *r = *storm() },
		"no run with Spillway": func(r *Result) { r.Interrupted, r.With = true, nil },
		"no run":               func(r *Result) { r.Interrupted, r.Without, r.With = true, nil, nil },
		"nothing":              func(r *Result) { *r = Result{Interrupted: true} },
	} {
		r := sample()
		change(r)
		if r.Interrupted {
			r.Checks = nil
		} else {
			r.conclude()
		}
		got := summaryOf(t, r)
		if lines := strings.Count(got, "\n"); lines > 14 {
			t.Errorf("%s: %d lines:\n%s", name, lines, got)
		}
		for line := range strings.Lines(got) {
			if len([]rune(line)) > 140 {
				t.Errorf("%s: a line of %d columns: %s", name, len([]rune(line)), line)
			}
		}
		if strings.HasPrefix(got, "INTERRUPTED") != r.Interrupted || strings.Contains(got, "NaN") || strings.Contains(got, "Inf") {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}

// A bar of full height is the capacity, or more.
func TestBars(t *testing.T) {
	for share, want := range map[float64]rune{-1: ' ', 0: '·', 0.01: '▁', 0.2: '▂', 0.5: '▅', 0.99: '█', 10: '█'} {
		if got := bar(share); got != want {
			t.Errorf("%v: %c, want %c", share, got, want)
		}
	}
}
