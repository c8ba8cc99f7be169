package retry_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/retry"
)

func TestHedgeConfig(t *testing.T) {
	for _, row := range []struct {
		c    retry.HedgeConfig
		path string
	}{
		{retry.HedgeConfig{}, "Delay"},
		{retry.HedgeConfig{Delay: -time.Second}, "Delay"},
		{retry.HedgeConfig{Delay: time.Microsecond}, "Delay"},
		{retry.HedgeConfig{Percentile: 0.4}, "Percentile"},
		{retry.HedgeConfig{Percentile: 1}, "Percentile"},
		{retry.HedgeConfig{Percentile: math.NaN()}, "Percentile"},
		{retry.HedgeConfig{Delay: time.Millisecond}, ""},
		{retry.HedgeConfig{Percentile: 0.95, Delay: time.Second}, ""},
	} {
		_, err := retry.NewHedge(row.c)
		e, _ := errors.AsType[*spillway.FieldError](err)
		if (err == nil) != (row.path == "") || e != nil && e.Path != row.path {
			t.Errorf("%+v: %v, want an error of %q", row.c, err, row.path)
		}
	}
}

// The delay is the percentile of the latency, and follows it up and down; never less than Delay.
func TestHedgeDelay(t *testing.T) {
	h, err := retry.NewHedge(retry.HedgeConfig{Percentile: 0.9, Delay: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if _, known := h.Delay(); known {
			t.Fatalf("known after %d calls", i)
		}
		h.Answered(time.Duration(i+1)*time.Millisecond, false)
	}
	for _, row := range []struct{ calls, scale, least, most int }{{1000, 1, 80, 97}, {1000, 10, 800, 970}, {3000, 1, 80, 97}} {
		for i := range row.calls {
			h.Answered(time.Duration((i*37%100+1)*row.scale)*time.Millisecond, false)
		}
		d, known := h.Delay()
		if ms := int(d.Milliseconds()); !known || ms < row.least || ms > row.most {
			t.Errorf("the 90th percentile of 1 to %d ms is %v, want %d to %d ms", 100*row.scale, d, row.least, row.most)
		}
	}
	for range 5000 {
		h.Answered(time.Microsecond, false)
	}
	if d, _ := h.Delay(); d != 5*time.Millisecond {
		t.Errorf("of quick calls: %v, want Delay", d)
	}
}

// Hedges are at most a tenth of the calls, also if all of them win, and cost what a retry does.
func TestHedgeBudgets(t *testing.T) {
	for name, row := range map[string]struct {
		strategy func() (retry.Strategy, error)
		wins     bool
		most     int
	}{
		"all win": {func() (retry.Strategy, error) {
			return retry.NewBudgeted(retry.BudgetedConfig{Budget: retry.Unlimited{}})
		}, true, 200},
		"none win": {func() (retry.Strategy, error) {
			return retry.NewBudgeted(retry.BudgetedConfig{Budget: retry.Unlimited{}})
		}, false, 10 + 20},
		"no retries": {func() (retry.Strategy, error) { return retry.NewBudgeted(retry.BudgetedConfig{Ratio: -1}) }, true, 0},
	} {
		h, err := retry.NewHedge(retry.HedgeConfig{Delay: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		s, err := row.strategy()
		if err != nil {
			t.Fatal(err)
		}
		sent := 0
		for range 2000 {
			h.Begin()
			h.Answered(0, false)
			if h.Pay(time.Unix(1e9, 0), s, &spillway.Call{}) {
				sent++
				h.Settle(row.wins)
			}
		}
		if sent > row.most || sent < row.most*9/10 {
			t.Errorf("%s: %d hedges of 2000 calls, want about %d", name, sent, row.most)
		}
		if st := h.Stats(time.Time{}); st.SentTotal != uint64(sent) || st.SentTotal+st.RejectedTotal != 2000 {
			t.Errorf("%s: %+v", name, st)
		}
	}
}
