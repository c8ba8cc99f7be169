package ingress

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/shed"
)

// A loaded is a Server of what serves four requests at once, of 20 ms each in the mean: four
// processors, or a pool of four slots.
type loaded struct {
	server  *Server
	slots   chan struct{}
	ready   atomic.Int64 // requests that wait for a slot
	random  *rand.Rand
	timeout time.Duration
	aborts  bool // a client that leaves ends the work that has not begun

	counts                    time.Time // from when on
	offered, rejected, served [spillway.Criticalities]atomic.Int64
}

// Observe counts rejections.
func (x *loaded) Observe(e spillway.Event) {
	if e.Rejected && !e.Time.Before(x.counts) {
		x.rejected[e.Call.Criticality.Index()].Add(1)
	}
}

// state is that of the process.
func (x *loaded) state(cpu bool) func(time.Time) shed.State {
	return func(time.Time) shed.State {
		if !cpu {
			return shed.State{Processors: 4, CPU: 0.1}
		}
		return shed.State{Processors: 4, Runnable: int(x.ready.Load()), CPU: float64(len(x.slots)) / 4}
	}
}

// offer sends requests of four classes at random times.
func (x *loaded) offer(d time.Duration, rate float64) {
	done, sent := make(chan struct{}, 1<<16), 0
	for end := time.Now().Add(d); time.Now().Before(end); sent++ {
		time.Sleep(time.Duration(x.random.ExpFloat64() / rate * float64(time.Second)))
		class, takes := x.random.IntN(spillway.Criticalities), time.Duration(x.random.ExpFloat64()*20e6)
		go func() {
			x.request(class, takes)
			done <- struct{}{}
		}()
	}
	for range sent {
		<-done
	}
}

func (x *loaded) request(class int, takes time.Duration) {
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	defer time.AfterFunc(x.timeout, leave).Stop()
	if !time.Now().Before(x.counts) {
		x.offered[class].Add(1)
	}
	slot, rejection := x.server.Enter(ctx, spillway.Call{Key: "pool", Criticality: spillway.Criticality(class) + spillway.Sheddable}, ratelimit.Caller{})
	if rejection.Rejected() {
		return
	}
	o := spillway.OutcomeAbandoned
	defer func() { slot.Done(o) }()
	x.ready.Add(1)
	if x.aborts {
		select {
		case x.slots <- struct{}{}:
		case <-ctx.Done():
			x.ready.Add(-1)
			return
		}
	} else {
		x.slots <- struct{}{}
	}
	x.ready.Add(-1)
	time.Sleep(takes)
	<-x.slots
	if ctx.Err() == nil {
		o = spillway.OutcomeServed
		x.served[class].Add(1)
	}
}

// soon is idle every 100 µs, in a bubble.
type soon struct{ nap }

func (soon) wait() { time.Sleep(100 * time.Microsecond) }

// share returns which share of what comes is, or would be, rejected, of all and of each class.
func share(t *testing.T, mode spillway.Mode, cpu, aborts bool, times float64, timeout time.Duration) (all float64, classes [spillway.Criticalities]float64) {
	synctest.Test(t, func(t *testing.T) {
		x := &loaded{slots: make(chan struct{}, 4), random: rand.New(rand.NewPCG(3, 4)), timeout: timeout, aborts: aborts}
		s := must(t, Config{ShedMode: mode, Observer: x})
		s.core.State = x.state(cpu)
		s.dispatcher.idle.close()
		s.dispatcher.idle = soon{}
		x.server = s
		x.counts = time.Now().Add(5 * time.Second)
		x.offer(15*time.Second, 200*times)
		offered, rejected := 0., 0.
		for i := range classes {
			offered += float64(x.offered[i].Load())
			rejected += float64(x.rejected[i].Load())
			classes[i] = float64(x.rejected[i].Load()) / float64(x.offered[i].Load())
		}
		all = rejected / offered
	})
	return all, classes
}

// TestObservedOverloadEnds: an overload that is over is over for the gate that observes it: when
// less comes, and when the server can do more.
func TestObservedOverloadEnds(t *testing.T) {
	for _, cpu := range []bool{false, true} {
		for more, rate := range map[int]float64{0: 100, 36: 400} {
			synctest.Test(t, func(t *testing.T) {
				x := &loaded{slots: make(chan struct{}, 4+more), random: rand.New(rand.NewPCG(3, 4)), timeout: time.Hour, counts: time.Now().Add(time.Hour)}
				for range more {
					x.slots <- struct{}{}
				}
				s := must(t, Config{ShedMode: spillway.ModeObserve, Observer: x})
				s.core.State = x.state(cpu)
				x.server = s
				x.counts = time.Now().Add(20 * time.Second)
				time.AfterFunc(5*time.Second, func() {
					for range more {
						<-x.slots
					}
				})
				if more == 0 {
					x.offer(5*time.Second, 400)
				}
				x.offer(40*time.Second, rate)
				offered, rejected := 0., 0.
				for i := range x.offered {
					offered += float64(x.offered[i].Load())
					rejected += float64(x.rejected[i].Load())
				}
				if rejected > 0.01*offered {
					t.Errorf("processors %v, %d slots more, then %.0f/s: %.3f would be rejected, want none", cpu, more, rate, rejected/offered)
				}
			})
		}
	}
}

// TestObservedShare: a server that observes counts about what it would reject, of each class, if
// clients stay. If they leave it answers less than it could, and counts more.
func TestObservedShare(t *testing.T) {
	for name, row := range map[string]struct {
		timeout time.Duration
		aborts  bool
		most    float64 // more is counted
	}{"they stay": {time.Hour, true, 0.08}, "they leave": {time.Second, true, 1}, "they leave and are worked for": {time.Second, false, 1}} {
		for _, cpu := range []bool{false, true} {
			for _, times := range []float64{0.9, 1.2, 2, 4} {
				enforced, by := share(t, spillway.ModeEnforce, cpu, row.aborts, times, row.timeout)
				observed, would := share(t, spillway.ModeObserve, cpu, row.aborts, times, row.timeout)
				t.Logf("%s, processors %5v, %.1f times: enforced %.3f, observed %.3f; by class %.2f, %.2f", name, cpu, times, enforced, observed, by, would)
				if more := observed - enforced; more < -0.05 || more > row.most {
					t.Errorf("%s, processors %v, %v times: %.3f would be rejected, want %.3f", name, cpu, times, observed, enforced)
				}
			}
		}
	}
}
