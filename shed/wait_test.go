package shed_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/internal/pace"
	"github.com/seed90641741/spillway/shed"
)

// paced is a limit that says what a test wants of it.
type paced struct {
	*concurrency.Limiter

	pace pace.Pace
}

func (p *paced) Ask(time.Time, string) pace.Pace { return p.pace }

// TestWhatLimitsTheWait: a request that waited for too long learns which limit that was: the rejection
// has its Setting, how long it was, and says in words which others do not count.
func TestWhatLimitsTheWait(t *testing.T) {
	const ms = time.Millisecond
	full := pace.Pace{Latency: 0.02, Throughput: 400, Usual: 0.02}
	found := full
	found.Found, found.Saturated, found.Parked = true, true, time.Second
	free := pace.Pace{Free: true, Left: 100, Latency: 0.02}
	for name, row := range map[string]struct {
		pace     pace.Pace
		state    shed.State
		maxWait  time.Duration
		deadline time.Duration // 0: none
		overload bool          // stands, and rejects more than a fifth
		setting  string
		wait     time.Duration
	}{
		"no deadline":                   {full, idle, 300 * ms, 0, false, shed.ByMaxWait, 300 * ms},
		"no deadline, longer":           {full, idle, 3000 * ms, 0, false, shed.ByMaxWait, 3000 * ms},
		"a deadline":                    {full, idle, 300 * ms, 2040 * ms, false, shed.ByDeadline, 1500 * ms},
		"a deadline, less than that":    {full, idle, 300 * ms, 140 * ms, false, shed.ByDeadline, 75 * ms},
		"a deadline, a quarter of all":  {full, idle, 300 * ms, 48 * ms, false, shed.ByDeadline, 12 * ms},
		"a deadline, a queue was found": {found, idle, 300 * ms, 2040 * ms, false, shed.ByLatency, time.Second},
		"a short queue":                 {found, idle, 300 * ms, 440 * ms, true, shed.ByQueue, 0},
		"a short queue, no deadline":    {found, idle, 300 * ms, 0, true, shed.ByQueue, 0},
		"a processor":                   {free, busy, 300 * ms, 2040 * ms, false, shed.ByBurst, 1000 * ms},
		"a processor, little time":      {free, busy, 300 * ms, 140 * ms, false, shed.ByDeadline, 75 * ms},
		"a processor, burst":            {free, busy, 40 * ms, 0, false, shed.ByBurst, 1000 * ms},
		"a processor, patient":          {free, busy, 4000 * ms, 0, false, shed.ByMaxWait, 4000 * ms},
	} {
		s := must(t, shed.Config{MaxWait: row.maxWait, Limit: &paced{limiter(t, concurrency.Config{}), row.pace}})
		now := t0
		if row.overload {
			now = overload(t, s)
		}
		call := &spillway.Call{Criticality: spillway.Critical}
		if row.deadline > 0 {
			call.Deadline = now.Add(row.deadline)
		}
		w := new(shed.Waiter)
		if d := s.Arrive(now, call, &row.state, w); d.Verdict != shed.Wait || row.wait > 0 && d.MaxWait != row.wait {
			t.Errorf("%s: %+v; want a wait of %v", name, d, row.wait)
			continue
		} else if row.wait == 0 && d.MaxWait >= row.maxWait {
			t.Errorf("%s: the wait is %v; want less than max_wait", name, d.MaxWait)
		}
		s.Expire(w)
		e, _ := errors.AsType[*spillway.RejectedError](w.Err)
		if e == nil || e.Reason != spillway.ReasonMaxWait || e.Setting != row.setting || e.Unit != "ms waited" || row.wait > 0 && time.Duration(e.Level)*ms != row.wait {
			t.Errorf("%s: %+v; want %s", name, e, row.setting)
			continue
		}
		if says := strings.Contains(e.Advice, "max_wait does not count") || strings.Contains(e.Advice, "max_wait do not count"); says != (row.setting == shed.ByDeadline || row.setting == shed.ByLatency) {
			t.Errorf("%s: %s", name, e.Advice)
		}
	}
}

// overload rejects requests for two seconds, in which none starts, and returns the time. No request
// waits afterwards.
func overload(t *testing.T, s *shed.Shedder) time.Time {
	t.Helper()
	var waiting []*shed.Waiter
	now := t0
	for range 400 {
		now = now.Add(5 * time.Millisecond)
		w := new(shed.Waiter)
		if d := s.Arrive(now, &spillway.Call{Criticality: spillway.Critical}, &idle, w); d.Verdict == shed.Wait {
			waiting = append(waiting, w)
		}
		if len(waiting) > 4 {
			s.Expire(waiting[0])
			waiting = waiting[1:]
		}
	}
	for _, w := range waiting {
		s.Expire(w)
	}
	return now
}

// TestTwoLimitsOfTheWait: requests of one class whose waits have two different limits are rejected in
// turn, and that allocates nothing: each limit has its own rejections.
func TestTwoLimitsOfTheWait(t *testing.T) {
	s := must(t, shed.Config{MaxWait: 300 * time.Millisecond, Limit: &paced{limiter(t, concurrency.Config{}), pace.Pace{Latency: 0.02, Usual: 0.02}}})
	var w shed.Waiter
	later := spillway.Call{Criticality: spillway.Critical, Deadline: t0.Add(2 * time.Second)}
	whenever := spillway.Call{Criticality: spillway.Critical}
	seen := make(map[string]int, 4)
	reject := func() {
		for _, call := range []*spillway.Call{&later, &whenever} {
			if d := s.Arrive(t0, call, &idle, &w); d.Verdict != shed.Wait {
				continue
			}
			s.Expire(&w)
			e, _ := errors.AsType[*spillway.RejectedError](w.Err)
			seen[e.Setting]++
		}
	}
	reject()
	if n := testing.AllocsPerRun(1000, reject); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if seen[shed.ByDeadline] == 0 || seen[shed.ByMaxWait] == 0 {
		t.Errorf("rejected: %v", seen)
	}
}
