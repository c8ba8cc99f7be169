package tune_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/tune"
)

// The first and the last value of each range are allowed.
func TestConfigAtItsBounds(t *testing.T) {
	signals := func(n int) (all []tune.Signal) {
		for i := range n {
			all = append(all, tune.Signal{Name: fmt.Sprint(i), Target: 1})
		}
		return all
	}
	one := signals(1)
	for _, c := range []tune.Config{
		{Limit: 1e12, Signals: one}, {Limit: 5, Min: 5, Max: 5, Signals: one},
		{Limit: 10, Signals: signals(16)}, {Limit: 10, Whole: true, MaxDelta: 1, Signals: one},
		{Limit: 10, Increase: 0.9, Decrease: 0.9, MaxStep: 0.9, Gain: 1, Signals: one},
		{Limit: 10, Reaction: time.Millisecond, Persist: time.Hour, Stale: time.Millisecond, Signals: one},
		{Limit: 10, Reaction: time.Hour, Stale: 24 * time.Hour, Signals: one},
		{Limit: 10, Signals: []tune.Signal{{Name: "a", Target: 1e12}}},
	} {
		if _, err := tune.New(c); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if got := (tune.Resume + 1).String(); got != "Rule(4)" {
		t.Errorf("the rule after the last one is %q", got)
	}
}

// Values are rounded to whole numbers from 1000 on, and written out up to 1e12.
func TestShortNumbers(t *testing.T) {
	for v, want := range map[float64]string{999.96: "1000", 1000.4: "1000", 123456.7: "123457", 1e12: "1e+12", 0.12345: "0.1235"} {
		m := tune.Move{From: v, To: 5, Applied: true, Signal: tune.Signal{Name: "a", Target: 1}, Value: math.NaN()}
		if got, _, _ := strings.Cut(m.String(), " "); got != want {
			t.Errorf("%v is %q, want %q", v, got, want)
		}
	}
}

// An observing Tuner says the same again after a minute.
func TestIntentionIsRepeated(t *testing.T) {
	c := latency(tune.Config{Persist: -1})
	c.Enforce = false
	tuner := must(tune.New(c))
	for _, row := range []struct {
		at   time.Duration
		said bool
	}{{0, true}, {time.Second, false}, {time.Minute - 1, false}, {time.Minute, true}, {time.Minute + time.Second, false}} {
		if m, said := tuner.Read(t0.Add(row.at), nan, 60); said != row.said {
			t.Errorf("at %v: %v %v, want %v", row.at, said, m, row.said)
		}
	}
	if p := tuner.Stats(t0); p.Pressure() != 1.2 {
		t.Errorf("a pressure of %v, want 1.2", p.Pressure())
	}
}

// A limit that was moved stays when only whole numbers are wanted, if it is one.
func TestUpdateToWholeNumbers(t *testing.T) {
	for moves, want := range map[int]float64{1: 95, 2: 100} {
		tuner := must(tune.New(latency(tune.Config{Persist: -1})))
		for i := range moves {
			tuner.Read(t0.Add(time.Duration(i)*time.Second), nan, 60)
		}
		before := tuner.Limit()
		if err := tuner.Update(latency(tune.Config{Persist: -1, Whole: true})); err != nil || tuner.Limit() != want {
			t.Errorf("from %v: %v, %v; want %v", before, tuner.Limit(), err, want)
		}
	}
}
