package forecast

import (
	"testing"

	"github.com/seed90641741/spillway"
)

func TestWords(t *testing.T) {
	const high = " In an overload these counts are too high: while nothing is rejected, the overload lasts."
	type classes = [spillway.Criticalities]float64
	for _, row := range []struct {
		mode spillway.Mode
		f    Figures
		want string
	}{
		{spillway.ModeOff, Figures{Seconds: 10, Offered: 50}, "In mode off nothing is counted: set mode observe to see what mode enforce would reject."},
		{spillway.ModeObserve, Figures{Seconds: 3}, "In the last 3 s no requests came: what mode enforce would reject is unknown."},
		{spillway.ModeObserve, Figures{Seconds: 10, Offered: 742, Ended: classes{0, 0, 742, 0}}, "In the last 10 s gates in observe mode would have rejected none of 742/s."},
		{
			spillway.ModeObserve, Figures{Seconds: 10, Offered: 1000, Would: classes{300, 0, 100, 0}, Ended: classes{300, 0, 500, 100}},
			"In the last 10 s gates in observe mode would have rejected 40 % of 1,000/s: 100 % of SHEDDABLE, 20 % of CRITICAL, none of CRITICAL_PLUS." + high,
		},
		{ // requests that hang have not ended
			spillway.ModeObserve, Figures{Seconds: 10, Offered: 100, Would: classes{0, 0, 90, 0}},
			"In the last 10 s gates in observe mode would have rejected 90 % of 100/s: 100 % of CRITICAL." + high,
		},
		{ // what was counted as offered just before the window
			spillway.ModeObserve, Figures{Seconds: 1, Offered: 9, Would: classes{0, 0, 12, 0}, Ended: classes{0, 0, 12, 0}},
			"In the last 1 s gates in observe mode would have rejected 100 % of 12/s: 100 % of CRITICAL." + high,
		},
	} {
		if got := row.f.Words(row.mode); got != row.want {
			t.Errorf("%+v: got\n%s\nwant\n%s", row.f, got, row.want)
		}
	}
}
