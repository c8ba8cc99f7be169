package drill

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/load"
	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/process"
)

// The machine disturbs a run if one of these is exceeded. None of it is caused by calls, or by Spillway: interrupts and the processes of
// the drill do not count as others, the work of a call is timed where nothing interrupts it, and the generator has two
// thirds of its processors in reserve.
const (
	noisyTaken  = 0.05 // of the backend's processor during the step: half of what the promised goodput leaves
	noisyWindow = 0.4  // of it in a quarter of a second: calls are late by a tenth of a second
	noisyWork   = 0.05 // longer than the processor time of a call in the capacity measurements
	noisyDrift  = 0.1  // of the mean of the capacities before and after the run
	noisySends  = promiseDropShare
	// noisyMargin is the goodput, in capacities, that noise costs on top of its share: the policies adapt to it and back.
	noisyMargin = 0.15
)

// lateSend is the share of the deadline after which a send is late.
const lateSend = 0.25

// Noise says what the machine took from the protected run. It is empty if nothing shows that, or if the goodput is lower than
// that explains.
func (r *Result) Noise() string {
	w, taken, worst, slower := r.With, 0.0, 0.0, 0.0
	if w.Taken != nil && w.TakenWorst != nil {
		taken, worst = *w.Taken, *w.TakenWorst
	}
	if usual := (r.WorkBefore + r.WorkAfter) / 2; usual > 0 && w.Work != nil {
		slower = *w.Work/usual - 1
	}
	drift, late := math.Abs(r.CapacityAfterRPS-r.CapacityBeforeRPS)/max(r.CapacityRPS, 1), w.lateRatio()
	lost, bound := taken+max(slower, 0)+drift/2+late, r.goodputBound()
	switch {
	case r.Settings.Scenario != ScenarioStorm && w.GoodputRatio < bound-lost-noisyMargin:
		return ""
	case r.Settings.Saturated:
		return "callers and rejections need too much of its processors; try --backend=blocking or a lower --overload"
	case taken > noisyTaken:
		return fmt.Sprintf("other programs took %s of the backend's processor", percent(taken))
	case worst > noisyWindow:
		return fmt.Sprintf("other programs took %s of the backend's processor for a quarter of a second", percent(worst))
	case slower > noisyWork:
		return fmt.Sprintf("the processor of the backend took %s longer for a call than in the capacity measurements", percent(slower))
	case drift > noisyDrift:
		return fmt.Sprintf("the capacity changed from %.0f/s to %.0f/s", r.CapacityBeforeRPS, r.CapacityAfterRPS)
	case late > noisySends:
		return fmt.Sprintf("the load generator sent %s of the calls late", percent(late))
	case w.GoodputRatio < bound && w.GoodputRatio+lost >= bound: // each of them takes little, and less than that is missing
		return fmt.Sprintf("in all %s of the capacity was taken, and %s is missing", percent(lost), percent(bound-w.GoodputRatio))
	}
	return ""
}

// A watch is what others took of the backend's processor while a run lasted.
type watch struct{ step, worst *float64 }

// watch samples what others take of the processor of own from the beginning of the step on, in a run that began at start,
// until ctx ends. The result is empty where that is not known.
func (d *drill) watch(ctx context.Context, start time.Time, own ...*process.Process) (w watch) {
	step := d.result.Settings.Phases[1]
	from := start.Add(seconds(step.Start))
	if !sleepUntil(ctx, from) {
		return w
	}
	begin, known := d.cpus.Taken(own...)
	for last, at := begin, load.RecoveryWindow; known && sleepUntil(ctx, from.Add(at)); at += load.RecoveryWindow {
		var now time.Duration
		if now, known = d.cpus.Taken(own...); !known {
			break
		}
		share := (now - last).Seconds() / load.RecoveryWindow.Seconds()
		if w.worst == nil || share > *w.worst {
			w.worst = &share
		}
		if at <= seconds(step.End-step.Start) {
			w.step = new(max(0, (now-begin).Seconds()/at.Seconds()))
		}
		last = now
	}
	return w
}

// work returns the mean processor time of the work of the answers, relative to the calibration. It returns nil if no answer reports it.
func work(records []record) *float64 {
	sum, n := 0.0, 0
	for i := range records {
		if r := &records[i]; r.work > 0 {
			sum, n = sum+r.work, n+1
		}
	}
	if n == 0 {
		return nil
	}
	return new(sum / float64(n))
}

// lateSends counts the calls that were sent late, or not at all.
func lateSends(records []record, deadline time.Duration) (n int) {
	late := time.Duration(lateSend * float64(deadline))
	for i := range records {
		if r := &records[i]; r.outcome == dropped || r.sent-r.at > late {
			n++
		}
	}
	return n
}

// lateRatio returns the share of the calls of the whole run that the generator sent late.
func (run *Run) lateRatio() float64 {
	return float64(run.LateSends) / float64(max(1, run.whole().Offered))
}
