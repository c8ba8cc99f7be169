package shed_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/seed90641741/spillway/shed"
)

func TestAcceptRatio(t *testing.T) {
	for _, row := range []struct {
		offered, rejected uint64 // in 10 ms
		want              string
	}{
		{1, 0, ""}, {20, 1, ""}, {20, 2, "0.9"}, {2, 1, "0.5"}, {3, 2, "0.4"}, {10, 9, "0.1"}, {100, 99, "0.01"}, {1000, 999, "0.01"}, {5, 5, "0"},
	} {
		var a shed.AcceptRatio
		var r shed.Ratio
		for i := range uint64(1000) {
			r = a.Observe(t0.Add(time.Duration(i)*10*time.Millisecond), i*row.offered, i*row.rejected)
		}
		if r.String() != row.want {
			t.Errorf("%d of %d rejected: %q, want %q", row.rejected, row.offered, r, row.want)
		}
		if f, err := strconv.ParseFloat(r.String(), 64); r != shed.RatioOne && (err != nil || f != r.Float()) {
			t.Errorf("%q is %v", r, r.Float())
		}
	}
}

// Few calls tell nothing, an overload is forgotten, and counters that jump or times
// that step back do no harm.
func TestAcceptRatioForgets(t *testing.T) {
	var a shed.AcceptRatio
	if r := a.Observe(t0, 9, 9); r != shed.RatioOne {
		t.Errorf("9 calls tell %q", r)
	}
	if r := a.Observe(t0.Add(time.Millisecond), 20, 20); r.Float() != 0 {
		t.Errorf("20 rejected calls tell %q", r)
	}
	if r := a.Observe(t0.Add(-time.Hour), 20, 20); r.Float() != 0 {
		t.Errorf("a step back tells %q", r)
	}
	if r := a.Observe(t0.Add(10*time.Second), 20, 20); r != shed.RatioOne {
		t.Errorf("10 s later: %q", r)
	}
	if r := a.Observe(t0.Add(11*time.Second), 0, 0); r != shed.RatioOne {
		t.Errorf("counters that begin again: %q", r)
	}
	if n := testing.AllocsPerRun(100, func() { a.Observe(t0, 5, 5) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if shed.Ratio(255).String() != "0" {
		t.Error("a ratio that there is not")
	}
}
