package drill

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/load"
)

// MinSamplesP99 is how many samples a 99th percentile takes to be claimed: ten
// of them are then above it.
const MinSamplesP99 = 1000

// recovery returns how long the service took to be back, and whether it was.
// records are those from the end of the step on, in order of their intended send.
func recovery(records []record, end, until time.Duration) (time.Duration, bool) {
	whole := int((until - end) / load.RecoveryWindow)
	return load.Recovery(whole, func(window int) (offered, answered int) {
		to := end + time.Duration(window+1)*load.RecoveryWindow
		for ; len(records) > 0 && records[0].at < to; records = records[1:] {
			offered++
			if records[0].outcome == good {
				answered++
			}
		}
		return offered, answered
	})
}

func milliDuration(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (c *Counts) add(r *record) {
	c.Offered++
	c.Attempts += int(r.attempts)
	c.Retries += max(0, int(r.attempts)-1)
	*c.of(r.outcome)++
	if r.outcome == rejectedThrottle || r.outcome == rejectedInflight {
		c.RejectedLocal++
	}
}

func (c *Counts) of(o outcome) *int {
	return [...]*int{
		good:              &c.Goodput,
		late:              &c.Late,
		rejectedThrottle:  &c.RejectedThrottle,
		rejectedInflight:  &c.RejectedInFlight,
		rejectedByBackend: &c.RejectedByBackend,
		timedOut:          &c.TimedOut,
		failed:            &c.Failed,
		dropped:           &c.DroppedSends,
		unfinished:        &c.Unfinished,
	}[o]
}

// summary turns the records and the probe of a run into a Run. records are those
// whose time came.
func summary(records []record, p *probe, settings *Settings, capacity float64, length time.Duration) *Run {
	run := &Run{Seconds: length.Seconds()}
	for _, phase := range settings.Phases {
		c := NamedCounts{Name: phase.Name}
		in := between(records, seconds(phase.Start), seconds(phase.End))
		for i := range in {
			c.add(&in[i])
		}
		run.Phases = append(run.Phases, c)
		if phase.Name == PhaseStep {
			run.Counts = c.Counts
			run.Classes = byClass(in)
			run.summarizeStep(in, min(phase.End, run.Seconds)-phase.Start, capacity)
		}
	}
	end := seconds(settings.Phases[1].End)
	if took, ok := recovery(between(records, end, length), end, length); ok {
		run.RecoverS = new(took.Seconds())
	}
	run.summarizeLateness(records)
	run.Work = work(between(records, seconds(settings.Phases[1].Start), seconds(settings.Phases[1].End)))
	run.LateSends = lateSends(records, milliDuration(settings.DeadlineMS))
	run.Series = series(records, p, settings.MaxInFlight, length)
	return run
}

// byClass counts the records of each class, the highest first.
func byClass(records []record) []NamedCounts {
	all := make([]NamedCounts, spillway.Criticalities)
	for i := range all {
		all[i].Name = (spillway.CriticalPlus - spillway.Criticality(i)).String()
	}
	for i := range records {
		r := &records[i]
		all[len(all)-1-r.class.Index()].add(r)
	}
	return all
}

// summarizeStep expects the records of the step, which lasted for length seconds.
func (run *Run) summarizeStep(records []record, length, capacity float64) {
	if length <= 0 {
		return
	}
	run.GoodputRPS = float64(run.Goodput) / length
	run.GoodputRatio = run.GoodputRPS / capacity
	var latencies []time.Duration
	for i := range records {
		if records[i].outcome == good {
			latencies = append(latencies, records[i].latency())
		}
	}
	if sent := run.Attempts - run.Retries; sent > 0 {
		run.AttemptsPerCall = float64(run.Attempts) / float64(sent)
	}
	run.Samples = len(latencies)
	run.P50MS = load.Quantile(latencies, 0.50)
	if run.Samples >= MinSamplesP99 {
		run.P99MS = load.Quantile(latencies, 0.99)
	}
}

func (run *Run) summarizeLateness(records []record) {
	behind := make([]time.Duration, len(records))
	for i := range records {
		behind[i] = records[i].sent - records[i].at
	}
	if len(behind) > 0 {
		run.LatenessP50MS = *load.Quantile(behind, 0.50)
		run.LatenessP99MS = *load.Quantile(behind, 0.99)
	}
}

// between returns the records with an intended send in [from, to).
func between(records []record, from, to time.Duration) []record {
	first := func(t time.Duration) int {
		i, _ := slices.BinarySearchFunc(records, t, func(r record, t time.Duration) int { return cmp.Compare(r.at, t) })
		return i
	}
	return records[first(from):max(first(from), first(to))]
}

func series(records []record, p *probe, limit int, length time.Duration) Series {
	s := Series{StepS: slotLength.Seconds()}
	budget := 0.0
	for i := range p.slots {
		from := time.Duration(i) * slotLength
		if from >= length {
			break
		}
		s.T = append(s.T, from.Seconds())
		s.add(between(records, from, from+slotLength), &p.slots[i])
		if p.slots[i].looked {
			budget = p.slots[i].budget
		}
		if p.look != nil {
			s.Limit = append(s.Limit, limit)
			s.Budget = append(s.Budget, budget)
		}
	}
	return s
}

// add adds a slot: the calls that were to be sent in it, and what the probe saw.
func (s *Series) add(records []record, seen *slot) {
	var c Counts
	var answered []time.Duration
	for i := range records {
		c.add(&records[i])
		if o := records[i].outcome; o == good || o == late {
			answered = append(answered, records[i].latency())
		}
	}
	s.Offered = append(s.Offered, c.Offered)
	s.Goodput = append(s.Goodput, c.Goodput)
	s.Late = append(s.Late, c.Late)
	s.RejectedLocal = append(s.RejectedLocal, c.RejectedLocal)
	s.RejectedThrottle = append(s.RejectedThrottle, c.RejectedThrottle)
	s.RejectedInFlight = append(s.RejectedInFlight, c.RejectedInFlight)
	s.RejectedByBackend = append(s.RejectedByBackend, c.RejectedByBackend)
	s.TimedOut = append(s.TimedOut, c.TimedOut)
	s.Failed = append(s.Failed, c.Failed)
	s.DroppedSends = append(s.DroppedSends, c.DroppedSends)
	s.P50MS = append(s.P50MS, load.Quantile(answered, 0.50))
	s.P99MS = append(s.P99MS, load.Quantile(answered, 0.99))
	s.Attempts = append(s.Attempts, int(seen.attempts.Load()))
	s.Retries = append(s.Retries, int(seen.retries.Load()))
	s.InFlight = append(s.InFlight, int(seen.inFlight.Load()))
}
