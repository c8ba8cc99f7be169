package degradation

import (
	"math"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/elapsed"
)

var began = time.Unix(1e9, 0)

// Between pressure and calm nothing changes; both begin next to their bounds.
func TestPressureAndCalmAtTheirBounds(t *testing.T) {
	below := func(v float64) float64 { return math.Nextafter(v, 0) }
	above := func(v float64) float64 { return math.Nextafter(v, 1) }
	for _, row := range []struct {
		fill, usual, rejected float64
		pressed, drains, calm bool
	}{
		{pressedFill, pressedFill, pressedRejected, false, false, false},
		{above(pressedFill), 0, 0, true, false, false}, {0, 0, above(pressedRejected), true, false, false},
		{0.3, 0.4, 0, false, true, false}, {0.3, 0.3, 0, false, false, false}, {above(calmFill), 1, 0, false, true, false},
		{0.3, 0.4, below(pressedRejected), false, true, false}, {0.3, 0.4, pressedRejected, false, false, false},
		{below(calmFill), 1, below(calmRejected), false, false, true}, {calmFill, 1, 0, false, false, false}, {0, 0, calmRejected, false, false, false},
	} {
		d, p := Degrader{fill: row.fill, usual: row.usual, rejectedShare: row.rejected}, new(Pressure)
		if pressed, drains, calm := d.pressed(p) > 0, d.drains(), d.isCalm(p); pressed != row.pressed || drains != row.drains || calm != row.calm {
			t.Errorf("%+v: pressed %v, drains %v, calm %v", row, pressed, drains, calm)
		}
	}
}

// The share of rejections is of the requests that have come since the last observation. Without any
// it is 0. A second observation at one time changes nothing.
func TestObservedRejections(t *testing.T) {
	var d Degrader
	d.Observe(began, Pressure{})
	d.Observe(began.Add(10*time.Millisecond), Pressure{})
	if d.rejectedShare != 0 {
		t.Errorf("%v are rejected of none", d.rejectedShare)
	}
	d.Observe(began.Add(20*time.Millisecond), Pressure{Offered: [4]uint64{1, 1, 1, 1}, Rejected: [4]uint64{1}})
	if want := 0.25 * elapsed.Weight(10*time.Millisecond, pressureMemory); math.Abs(d.rejectedShare-want) > 1e-12 {
		t.Errorf("the rejected share is %v, want %v", d.rejectedShare, want)
	}
	d.Observe(began.Add(20*time.Millisecond), Pressure{Offered: [4]uint64{9, 9, 9, 9}})
	if d.offered[0] != 1 {
		t.Errorf("a second observation at one time counts %d calls", d.offered[0])
	}
}

// Without a stage a long time without observations is no reason to wait for the next one.
func TestPressureAfterIdleTime(t *testing.T) {
	var d Degrader
	d.Observe(began, Pressure{})
	d.Observe(began.Add(dwell), Pressure{Fill: 1, Offered: [4]uint64{turnover}})
	if d.stage != 1 {
		t.Errorf("stage %d, want 1", d.stage)
	}
}

// The offered rate is learned from half of the evidence after a second, or from less after ten.
func TestLearning(t *testing.T) {
	for _, row := range []struct {
		passed  time.Duration
		offered uint64
		want    bool
	}{
		{learning - 1, 1000, false}, {learning, evidence / 2, true}, {5 * learning, evidence/2 - 1, false},
		{10*learning - 1, evidence/2 - 1, false}, {10 * learning, evidence/2 - 1, true},
	} {
		d := Degrader{changed: began, offered: [4]uint64{row.offered}}
		if d.learn(began.Add(row.passed)); d.learned != row.want {
			t.Errorf("%d calls in %v: learned %v", row.offered, row.passed, d.learned)
		}
	}
}

// A stage that was left less than a minute ago, and is needed again, is held for longer.
func TestFailedTrials(t *testing.T) {
	now := began.Add(time.Hour)
	for _, row := range []struct {
		left, held  time.Duration // before now
		hold, climb time.Duration // afterwards
	}{
		{trial, 0, hold, climb}, {trial, trial - 1, hold, climb}, {trial, trial, 0, climb}, {trial - 1, trial, 2 * hold, 5 * dwell},
	} {
		d := Degrader{hold: hold, held: now.Add(-row.held)}
		d.rungs[1] = rung{needed: 1, left: now.Add(-row.left), rate: 2}
		d.rise(now, 1)
		if d.stage != 1 || d.hold != row.hold || d.climb != row.climb {
			t.Errorf("left %v ago: stage %d, hold %v, climb %v, want %v and %v", row.left, d.stage, d.hold, d.climb, row.hold, row.climb)
		}
	}
}

// A stage falls when less is offered than when it was needed, and enough calls were to be expected
// or the calm is long. If as much is offered, what is offered is measured anew.
func TestDescendAtItsBounds(t *testing.T) {
	for _, row := range []struct {
		calm    time.Duration
		needed  float64
		offered uint64
		stage   int
		anew    bool
	}{
		{dwell, evidence / dwell.Seconds(), 0, 0, true}, {dwell, evidence/dwell.Seconds() - 1, 0, 1, false},
		{dwell, evidence / dwell.Seconds(), 160, 1, false}, {dwell, evidence / dwell.Seconds(), 159, 0, true},
		{hold, 1, 0, 0, true}, {hold - 1, 1, 0, 1, false}, {5 * time.Second, 1, 0, 1, false},
		{2 * dwell, evidence / dwell.Seconds(), 400, 1, true}, {2 * dwell, evidence/dwell.Seconds() - 1, 400, 1, false},
	} {
		now := began.Add(row.calm)
		d := Degrader{stage: 1, calm: began, learned: true, changed: now.Add(-time.Second), offered: [4]uint64{row.offered}}
		d.rungs[1].needed = row.needed
		if d.descend(now); d.stage != row.stage || d.calm.Equal(now) != row.anew {
			t.Errorf("%+v: stage %d, calm since %v", row, d.stage, d.calm.Sub(began))
		}
	}
}

// Each class is a level below the class under it.
func TestLevelOfAStage(t *testing.T) {
	var d Degrader
	if !d.Idle() {
		t.Error("a new Degrader degrades")
	}
	d.level.Store(2)
	for class, want := range []spillway.DegradationLevel{2, 1, 0, 0} {
		if got := d.Level(spillway.Sheddable + spillway.Criticality(class)); got != want {
			t.Errorf("class %d has level %d in stage 2, want %d", class, got, want)
		}
	}
	if d.Idle() {
		t.Error("stage 2 is idle")
	}
}
