package sim

import (
	"math"
	"slices"
	"time"
)

// An Autoscaler changes the number of tasks of a service as a HorizontalPodAutoscaler of Kubernetes does with its defaults. Every
// 15 s each signal asks for a number of tasks, and the largest counts: the signal of all tasks over its target. Within 10 % of the
// target nothing changes. In 15 s the tasks may double, or grow by four. They shrink to the most that was asked for in the
// last 300 s. Rates are means of the last 30 s. A task that is removed gets no new requests, and ends those that it has.
//
// A target of zero means that its signal is not used.
type Autoscaler struct {
	// Max is the most tasks; the least is Tasks of the service. Zero means no autoscaler.
	Max int
	// Start is the time from the decision until a new task serves. Zero means 30 s.
	Start time.Duration
	// CPU is the target for the utilization of the processors of a task, such as 0.7.
	CPU float64
	// InFlight is the target for the requests at a task, those in its waiting queue included.
	InFlight float64
	// Offered is the target for the requests per second that arrive at a task, rejected ones included.
	Offered float64
	// Overload is the target for what arrives over what is not rejected. While less than 5 % is rejected the signal is zero.
	Overload float64
}

// The law of Kubernetes, with its defaults.
const (
	scaleEvery   = 15 * time.Second
	tolerance    = 0.1
	growAtOnce   = 4  // tasks, or as many as there are
	memorable    = 20 // decisions: 300 s
	overloadedBy = 0.05
)

// A scaler is the state of an Autoscaler.
type scaler struct {
	tasks  int            // wanted, those that start included
	before [2]Load        // sums of 15 and 30 s ago
	asked  [memorable]int // the last decisions
	n      int            // of all decisions
}

// most returns the largest number of tasks.
func (s *Service) most() int { return max(s.Tasks, s.Autoscale.Max) }

// scale decides on the number of tasks.
func (v *service) scale() {
	s, c := &v.scaler, &v.config.Autoscale
	for _, t := range v.tasks {
		t.account()
	}
	sum := v.sum()
	s.asked[s.n%memorable] = v.wanted(c, sum)
	s.n++
	want := s.asked[(s.n-1)%memorable]
	if want < s.tasks {
		want = min(slices.Max(s.asked[:]), s.tasks)
	}
	v.resize(min(max(want, v.config.Tasks), c.Max, s.tasks+max(s.tasks, growAtOnce)))
	s.before = [2]Load{sum, s.before[0]}
	serving := v.serving()
	v.count(func(l *Load) { l.Serving = max(l.Serving, serving) })
	v.push(int64(scaleEvery), scale, ref{id: uint32(v.index)})
}

// wanted returns the largest number of tasks that a signal asks for.
func (v *service) wanted(c *Autoscaler, sum Load) (most int) {
	s, seconds := &v.scaler, min(2*scaleEvery, time.Duration(v.now)).Seconds()
	arrived, rejected := float64(sum.Arrived-s.before[1].Arrived), float64(sum.Rejected-s.before[1].Rejected)
	present := 0
	for _, t := range v.tasks {
		present += t.present
	}
	overload := 0.0
	if rejected > overloadedBy*arrived {
		overload = arrived / max(arrived-rejected, 1) * float64(v.serving())
	}
	for _, signal := range [...]struct{ all, target float64 }{
		{float64(sum.BusyNS-s.before[1].BusyNS) / 1e9 / seconds / float64(v.config.Processors), c.CPU},
		{float64(present), c.InFlight},
		{arrived / seconds, c.Offered},
		{overload, c.Overload},
	} {
		if signal.target <= 0 {
			continue
		}
		n := int(math.Ceil(signal.all / signal.target))
		if ratio := signal.all / signal.target / float64(s.tasks); math.Abs(ratio-1) <= tolerance {
			n = s.tasks
		}
		most = max(most, n)
	}
	return most
}

// sum returns what has happened since the start.
func (v *service) sum() (all Load) {
	for i := range v.series {
		l := &v.series[i]
		all.Arrived += l.Arrived
		all.Rejected += l.Rejected
		all.BusyNS += l.BusyNS
	}
	return all
}

// serving returns how many tasks get requests.
func (v *service) serving() (n int) {
	for _, t := range v.tasks {
		if t.gone == 0 {
			n++
		}
	}
	return n
}

// resize starts or removes tasks. The tasks that are wanted are the first ones.
func (v *service) resize(tasks int) {
	s := &v.scaler
	for ; s.tasks < tasks; s.tasks++ {
		v.push(int64(v.config.Autoscale.Start), begin, ref{id: uint32(v.tasks[s.tasks].number), gen: v.tasks[s.tasks].life})
	}
	for ; s.tasks > tasks; s.tasks-- {
		t := v.tasks[s.tasks-1]
		if t.life++; t.gone == 0 {
			t.gone++
		}
	}
}

// begun is when a new task serves, unless it was removed meanwhile.
func (t *task) begun(life uint32) {
	if t.life != life {
		return
	}
	if t.gone--; t.present == 0 {
		t.renew()
	}
}
