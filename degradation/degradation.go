package degradation

import (
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/elapsed"
)

// Stages is the number of stages of degradation, without stage 0, in which nothing is degraded. In
// stage 1 the lowest class is at its first level; in the last stage the highest class is at its
// last level.
const Stages = spillway.Criticalities - 1 + spillway.DegradationLevels - 1

const (
	// pressureMemory smooths what is observed: longer than the gaps between
	// arrivals and the spikes of a fan-out, shorter than users notice.
	pressureMemory = 100 * time.Millisecond
	// climb is the least time between two stages upwards: by then the smoothed
	// pressure shows the effect of the stage before.
	climb = 2 * pressureMemory
	// turnover is the number of requests that must have arrived between two stages upwards: about the
	// capacity of the waiting queue, so that all waiting requests are newer than the change.
	turnover = 50
	// trend is the time constant of the usual fill. If the fill is below the usual one, the waiting
	// queue gets shorter by itself, and needs time, not another stage.
	trend = 10 * pressureMemory
	// dwell is the least time of calm before a stage downwards. It is ten times climb, so pressure
	// that remains shows in this time.
	dwell = 10 * climb
	// hold is for how long a stage lasts at least while the offered load is as high as when the stage
	// was needed. After that a lower stage is tried, because requests may have become cheaper. If the
	// trial fails, this time is doubled, up to maxHold, and no stage falls until it has passed again.
	// Two changes in 30 s are four in a minute.
	hold, maxHold = 30 * time.Second, 4 * time.Minute
	// trial is the time after a stage downwards in which a stage upwards means that the stage
	// downwards has failed.
	trial = time.Minute
	// learning is how long after a stage upwards the offered rate is measured.
	learning = time.Second
	// less is the share of the earlier offered rate below which the load counts as fallen. Retries of
	// rejected calls, a tenth where there is a budget, and chance change the rate by less.
	less = 0.8
	// margin is the span of utilization below the threshold of a class in which its answers are
	// degraded. It is the span over which package shed rejects more and more of a class.
	margin = 0.05
	// evidence is the number of arrivals that must be expected in a dwell: with 200, chance alone
	// makes the number lower by a fifth once in 400 times.
	evidence = 200
)

// Smoothed observations above the first value mean pressure, and below the second one calm. In
// between nothing changes: that is the hysteresis.
const (
	pressedFill, calmFill         = 0.5, 0.2 // of the waiting queue
	pressedRejected, calmRejected = 0.05, 0.01
)

// Pressure is what a [Degrader] observes: the signals by which a shed.Shedder decides.
type Pressure struct {
	// Fill is the share of the waiting queue that is in use.
	Fill float64
	// Offered and Rejected are all requests since the start, by class: all
	// arrivals, and the ones rejected for overload.
	Offered, Rejected [spillway.Criticalities]uint64
	// Utilization is how busy the process is by measures that do not show in the waiting queue.
	// Thresholds are the utilizations from which on each class is rejected.
	Utilization float64
	Thresholds  [spillway.Criticalities]float64
}

// A Degrader decides how far a task degrades its answers, by class. The zero
// Degrader is ready for use. Observe must not be called concurrently; all other
// methods are safe for concurrent use.
type Degrader struct {
	level   atomic.Int32 // stage, for readers
	changes atomic.Uint64

	stage         int
	started       bool
	last          time.Time
	offered       [spillway.Criticalities]uint64 // Pressure.Offered at the time last
	rejected      [spillway.Criticalities]uint64
	fill          float64 // smoothed
	usual         float64 // fill, smoothed over trend
	rejectedShare float64 // smoothed

	changed time.Time                      // when the stage last changed
	climb   time.Duration                  // least time from changed to a stage upwards
	hold    time.Duration                  // time before a trial; 0 means the constant hold
	held    time.Time                      // no stage falls before this time
	at      [spillway.Criticalities]uint64 // value of offered at the time changed
	learned bool                           // the rate of this stage is known
	calm    time.Time                      // since when there is calm; zero means no calm
	quiet   uint64                         // all requests offered when the calm began
	rungs   [Stages + 1]rung
}

// A rung is what is known of the step from the stage below to this one.
type rung struct {
	needed float64   // requests per second at which the stage below was too low; 0: unknown
	left   time.Time // when the stage was last left downwards
	rate   float64   // requests per second when it was left
}

// Observe takes in the pressure on this process at the time now. Call it often: every 10 ms under
// load. It allocates nothing.
func (d *Degrader) Observe(now time.Time, p Pressure) {
	if !d.started {
		d.started, d.last, d.changed = true, now, now
		d.offered, d.rejected = p.Offered, p.Rejected
		return
	}
	passed := now.Sub(d.last)
	if passed <= 0 {
		return
	}
	d.smooth(passed, &p)
	d.last, d.offered, d.rejected = now, p.Offered, p.Rejected
	if passed >= dwell && d.stage > 0 { // Observe was not called for so long
		d.set(now, max(0, d.stage-int(passed/dwell)))
		d.calm = time.Time{}
		return
	}
	d.learn(now)
	switch most := d.pressed(&p); {
	case d.stage < most:
		d.calm = time.Time{}
		if now.Sub(d.changed) >= d.climb && sum(&d.offered)-sum(&d.at) >= turnover && !d.drains() {
			d.rise(now, most)
		}
	case d.isCalm(&p):
		d.descend(now)
	default:
		d.calm = time.Time{}
	}
}

func (d *Degrader) smooth(passed time.Duration, p *Pressure) {
	weight := elapsed.Weight(passed, pressureMemory)
	d.fill += float64((p.Fill - d.fill) * weight)
	d.usual += float64((p.Fill - d.usual) * elapsed.Weight(passed, trend))
	share := 0.0
	if arrived := sum(&p.Offered) - sum(&d.offered); arrived > 0 {
		share = float64(sum(&p.Rejected)-sum(&d.rejected)) / float64(arrived)
	}
	d.rejectedShare += float64((min(share, 1) - d.rejectedShare) * weight)
}

func sum(counts *[spillway.Criticalities]uint64) (n uint64) {
	for _, c := range counts {
		n += c
	}
	return n
}

// pressed returns the highest stage that the pressure calls for.
func (d *Degrader) pressed(p *Pressure) (stage int) {
	if d.fill > pressedFill || d.rejectedShare > pressedRejected {
		return Stages
	}
	return wanted(p, margin)
}

// drains reports whether the waiting queue gets shorter by itself.
func (d *Degrader) drains() bool {
	return d.fill > calmFill && d.fill < d.usual && d.rejectedShare < pressedRejected
}

func (d *Degrader) isCalm(p *Pressure) bool {
	return d.fill < calmFill && d.rejectedShare < calmRejected && wanted(p, 2*margin) < max(d.stage, 1)
}

// wanted returns the stage that the utilization calls for: the number of classes whose threshold it
// has reached, or is nearer to than within.
func wanted(p *Pressure, within float64) (stage int) {
	for _, t := range p.Thresholds {
		if t > 0 && p.Utilization >= t-within {
			stage++
		}
	}
	return stage
}

// learn measures the offered rate in a stage that was needed.
func (d *Degrader) learn(now time.Time) {
	passed := now.Sub(d.changed)
	if d.learned || passed < learning {
		return
	}
	n := sum(&d.offered) - sum(&d.at)
	if n < evidence/2 && passed < 10*learning {
		return
	}
	d.learned = true
	for i := range d.rungs[:d.stage+1] {
		if r := &d.rungs[i]; r.needed == 0 {
			r.needed = float64(n) / passed.Seconds()
		}
	}
}

// rise goes to the next stage that changes something, at most to the stage most.
func (d *Degrader) rise(now time.Time, most int) {
	stage, patience := d.stage, climb
	if now.Sub(d.rungs[stage+1].left) < trial {
		d.hold = min(2*max(d.hold, hold), maxHold)
	} else if now.Sub(d.held) >= trial {
		d.hold = 0
	}
	for stage < most {
		stage++
		r := &d.rungs[stage]
		if now.Sub(r.left) < trial {
			patience = 5 * dwell // this stage was enough before, once the queue had drained
			d.held = now.Add(max(d.hold, hold))
			r.needed = r.rate
		} else {
			*r = rung{}
		}
		if d.affects(stage) {
			break
		}
	}
	d.set(now, stage)
	d.climb = patience
}

// descend goes to the stage below, once there was calm for long enough and either
// less is offered than when this stage was needed, or it is time for a trial.
func (d *Degrader) descend(now time.Time) {
	if d.stage == 0 {
		return
	}
	if d.calm.IsZero() {
		d.calm, d.quiet = now, sum(&d.offered)
		return
	}
	passed, r := now.Sub(d.calm), &d.rungs[d.stage]
	if passed < dwell || !d.learned || now.Before(d.held) {
		return
	}
	rate := float64(sum(&d.offered)-d.quiet) / passed.Seconds()
	fallen := rate < less*r.needed && (r.needed*passed.Seconds() >= evidence || passed >= hold)
	if !fallen && now.Sub(d.changed) < max(d.hold, hold) {
		if passed >= 2*dwell && r.needed*passed.Seconds() >= 2*evidence {
			d.calm, d.quiet = now, sum(&d.offered) // look at what is offered now
		}
		return
	}
	stage := d.stage
	for ok := true; ok && stage > 0; ok = !d.affects(stage + 1) {
		d.rungs[stage].left, d.rungs[stage].rate = now, rate
		stage--
	}
	d.set(now, stage)
	d.calm, d.quiet = now, sum(&d.offered)
	d.learned = true // what is needed here is known from the way up
}

// affects reports whether a class that has called since the last change has another
// level in the stage than in the one below.
func (d *Degrader) affects(stage int) bool {
	for class := range d.at {
		n := stage - class
		if n >= 1 && n < spillway.DegradationLevels && d.offered[class] > d.at[class] {
			return true
		}
	}
	return false
}

func (d *Degrader) set(now time.Time, stage int) {
	if stage == d.stage {
		return
	}
	d.stage, d.changed, d.climb, d.at, d.learned = stage, now, climb, d.offered, false
	d.level.Store(int32(stage))
	d.changes.Add(1)
}

// Idle reports whether no class is degraded.
func (d *Degrader) Idle() bool { return d.level.Load() == 0 }

// Level returns the level of a class. It takes no lock and allocates nothing.
func (d *Degrader) Level(c spillway.Criticality) spillway.DegradationLevel {
	return levelIn(int(d.level.Load()), c.Index())
}

func levelIn(stage, class int) spillway.DegradationLevel {
	return spillway.DegradationLevel(min(max(stage-class, 0), spillway.DegradationLevels-1))
}

// Stats says how a [Degrader] stands.
type Stats struct {
	// Stage is 0 to [Stages].
	Stage int
	// Levels are by class; index them with [spillway.Criticality.Index].
	Levels [spillway.Criticalities]spillway.DegradationLevel
	// ChangesTotal is how often the stage has changed since the start.
	ChangesTotal uint64
}

// Stats returns how d stands.
func (d *Degrader) Stats(now time.Time) Stats {
	s := Stats{Stage: int(d.level.Load()), ChangesTotal: d.changes.Load()}
	for i := range s.Levels {
		s.Levels[i] = levelIn(s.Stage, i)
	}
	return s
}
