package main

import (
	"slices"
	"testing"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/shed"
)

// Ours stays within the band of each scenario. -short skips this test, which takes
// a minute of two processors, and those against theory.
func TestBands(t *testing.T) {
	long(t)
	const most = 1 // per cent of false rejections
	for _, r := range evaluate(slices.Concat(scenarios, adversaries, innocents), []variant{{"ours", newOurs(shed.Config{})}}, seeds{n: 2, from: 10}, nil) {
		t.Run(r.Name, func(t *testing.T) {
			got := r.scores[0]
			t.Logf("good %.1f%% of the oracle's, false rejections %.1f%%, p99 %.0f ms", got.Percent, got.False, got.P99)
			if got.Percent < r.band() {
				t.Errorf("good %.1f%% of the oracle's, want %.0f%%", got.Percent, r.band())
			}
			if !r.Overload && got.False > most {
				t.Errorf("rejected %.1f%% where nothing needs to be, want at most %d%%", got.False, most)
			}
			if c := got.Classes[spillway.CriticalPlus.Index()]; c.percent(c.Good) < r.Critical {
				t.Errorf("served %.1f%% of CRITICAL_PLUS, want %.0f%%", c.percent(c.Good), r.Critical)
			}
			for k, least := range r.Isolated {
				if served := got.Keys[k].percent(got.Keys[k].Good); served < least {
					t.Errorf("served %.1f%% of key %d, which has no problem, want %.0f%%", served, k, least)
				}
			}
		})
	}
}
