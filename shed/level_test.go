package shed_test

import (
	"errors"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/internal/pace"
	"github.com/seed90641741/spillway/shed"
)

// TestLevels: each rejection says what was measured, in its unit, and the limit.
func TestLevels(t *testing.T) {
	type level struct {
		reason       spillway.Reason
		level, limit float64
		unit         string
	}
	for name, row := range map[string]struct {
		reject func(t *testing.T) error
		want   level
	}{
		"queue full": {func(t *testing.T) error {
			s := pastBurst(must(t, shed.Config{}))
			fill(t, s, spillway.Critical)
			d, _ := arrive(s, t0, spillway.Critical, busy)
			return d.Err
		}, level{spillway.ReasonQueueFull, 49, 49, "requests in the waiting queue"}},
		"evicted": {func(t *testing.T) error {
			s := pastBurst(must(t, shed.Config{}))
			fill(t, s, spillway.Critical)
			d, _ := arrive(s, t0, spillway.CriticalPlus, busy)
			return d.Evicted.Err
		}, level{spillway.ReasonQueueFull, 49, 49, "requests in the waiting queue"}},
		"maximum wait": {func(t *testing.T) error {
			s := must(t, shed.Config{MaxWait: 40 * time.Millisecond, Limit: limiter(t, concurrency.Config{MaxInFlight: 1, Fixed: true})})
			arrive(s, t0, spillway.Critical, idle)
			_, w := arrive(s, t0, spillway.Critical, idle)
			s.Expire(w)
			return w.Err
		}, level{spillway.ReasonMaxWait, 40, 40, "ms waited"}},
		"utilization": {func(t *testing.T) error {
			s := must(t, shed.Config{})
			return s.Reject(t0, &spillway.Call{Criticality: spillway.Sheddable}, 0, &shed.State{Processors: 1, Utilization: 1.234})
		}, level{spillway.ReasonUtilization, 120, 80, "% utilization"}},
		"utilization after Update": {func(t *testing.T) error {
			s, full := must(t, shed.Config{}), &shed.State{Processors: 1, Utilization: 0.97}
			_ = s.Reject(t0, &spillway.Call{Criticality: spillway.Sheddable}, 0, full)
			if err := s.Update(shed.Config{Thresholds: [4]float64{0.5, 0.6, 0.7, 0.8}}); err != nil {
				t.Fatal(err)
			}
			return s.Reject(t0, &spillway.Call{Criticality: spillway.Sheddable}, 0, full)
		}, level{spillway.ReasonUtilization, 97, 50, "% utilization"}},
		"deadline": {func(t *testing.T) error {
			s := must(t, shed.Config{Limit: fastest{limiter(t, concurrency.Config{})}})
			call := &spillway.Call{Deadline: t0.Add(4 * time.Millisecond)}
			s.Arrive(t0, call, &idle, nil) // one in a second finds out whether responses have become faster
			return s.Arrive(t0, call, &idle, nil).Err
		}, level{spillway.ReasonDeadline, 40, 100, "% of the fastest recent response time"}},
		"expired": {func(t *testing.T) error {
			return must(t, shed.Config{}).Arrive(t0, &spillway.Call{Deadline: t0.Add(-time.Second)}, &idle, nil).Err
		}, level{spillway.ReasonDeadline, 0, 100, "% of the fastest recent response time"}},
	} {
		t.Run(name, func(t *testing.T) {
			e, ok := errors.AsType[*spillway.RejectedError](row.reject(t))
			if !ok {
				t.Fatal("not rejected")
			}
			if got := (level{e.Reason, e.Level, e.Limit, e.Unit}); got != row.want {
				t.Errorf("%+v, want %+v", got, row.want)
			}
		})
	}
}

// TestLevelsOfClasses: the rejection of a class because of a higher class has the share of
// calls rejected in that class.
func TestLevelsOfClasses(t *testing.T) {
	s := pastBurst(must(t, shed.Config{}))
	fill(t, s, spillway.CriticalPlus)
	for range 30 {
		arrive(s, t0, spillway.CriticalPlus, busy)
	}
	d, _ := arrive(s, t0, spillway.Sheddable, busy)
	e, ok := errors.AsType[*spillway.RejectedError](d.Err)
	if !ok || e.Reason != spillway.ReasonHigherClass || e.Level < 20 || e.Level > 100 || e.Limit != 2 {
		t.Errorf("%+v", e)
	}
}

// fastest is a limit that knows the fastest recent response.
type fastest struct{ *concurrency.Limiter }

func (f fastest) Ask(now time.Time, key string) pace.Pace {
	pace := f.Limiter.Ask(now, key)
	pace.Fastest = 0.01
	return pace
}
