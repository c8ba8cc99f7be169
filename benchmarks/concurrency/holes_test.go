package main

import (
	"testing"

	"github.com/seed90641741/spillway/internal/thorough"
)

// Ours holds where it knows nothing, or something wrong: of each family the first row, and in a thorough test ten variations. Single
// variations of pools whose requests take longer than 10 s serve less: there a few requests are all that is known when the queue is long.
func TestHoles(t *testing.T) {
	long(t)
	n := uint64(0)
	if thorough.Enabled() {
		n = 10
	}
	rows := evaluate(holesOf(n, 1), []variant{{"ours", newOurs}}, seeds{n: 1}, nil)
	for f, family := range holes {
		mean, rejected := 0.0, 0.0
		of := rows[uint64(f)*(n+1) : uint64(f+1)*(n+1)]
		for _, r := range of {
			got := r.scores[0]
			t.Logf("%s: good %.1f%% of the oracle's, false rejections %.1f%%, worst five seconds %.0f%%; %s", r.Name, got.Percent, got.False, got.Worst, r.About)
			mean += min(100, got.Percent) / float64(len(of))
			rejected += got.False / float64(len(of))
		}
		if least := family.least; mean < least {
			t.Errorf("%s: good %.1f%% of the oracle's on average, want %v%%", family.name, mean, least)
		}
		if !of[0].Overload && rejected > family.most {
			t.Errorf("%s: rejected %.1f%% where nothing needs to be, want at most %v%%", family.name, rejected, family.most)
		}
	}
}
