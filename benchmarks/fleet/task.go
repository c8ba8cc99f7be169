package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/quota/fleet"
)

// A task is one process of the service: the quota that decides its calls, the Fleet that shares the
// quota, and the loop of [fleet.Run] as a coroutine. It is the way of its Fleet to the board, too.
type task struct {
	w        *world
	index    int
	zone     int
	fleet    *fleet.Fleet
	gate     *quota.Quota
	wakes    uint64 // serial number of the wake-up that is valid
	urgent   bool   // whether urgent demand ends the pause
	deadline time.Duration
	yield    func(time.Duration) bool
	next     func() (time.Duration, bool)
	stop     func()
	cut      bool          // off the board
	down     bool          // crashed
	frozen   time.Duration // until then the process does not run
	spent    time.Duration // processor time of this round trip, without the board's
	boarded  time.Duration // the board's, since the task was resumed
	timed    bool          // whether spent is measured
	synced   bool          // whether the round trip is over
	admitted []float64     // calls of the main customer, in each window
}

func newTask(w *world, index int) (*task, error) {
	k := &task{w: w, index: index, zone: index * w.zones() / w.Tasks, admitted: make([]float64, w.End/window+1)}
	c := w.config(w.Limit / float64(w.zones()))
	c.Task = fmt.Sprintf("task-%05d", index)
	var err error
	if k.fleet, err = fleet.New(c); err != nil {
		return nil, err
	}
	if k.gate, err = quota.New(quota.Config{Allocator: k.fleet, MaxUnlisted: maxUnlisted}); err != nil {
		return nil, err
	}
	k.next, k.stop = iter.Pull(k.loop)
	return k, nil
}

// resume runs the task until it sleeps.
func (k *task) resume() {
	switch {
	case k.down:
		return
	case k.frozen > k.w.now:
		k.w.wake(k, k.frozen)
		return
	}
	began := k.clock()
	k.boarded = 0
	until, ok := k.next()
	k.spent += k.clock() - began - k.boarded
	if k.synced {
		k.ended(k.fleet.Stats(k.w.clock()).Leader)
	}
	if ok {
		k.w.wake(k, until)
	}
}

// clock is the processor time, or zero for a task that is not timed: reading it costs what a round trip
// costs.
func (k *task) clock() time.Duration {
	if !k.timed {
		return 0
	}
	return processorTime()
}

// ended notes a round trip. With many customers the leader is timed, and a few others.
func (k *task) ended(leader bool) {
	if k.timed {
		k.w.measure(leader, k.spent)
	}
	k.spent, k.synced = 0, false
	k.timed = k.w.Customers > 0 && (leader || k.index%100 == 0)
}

// loop does what [fleet.Run] does.
func (k *task) loop(yield func(time.Duration) bool) {
	k.yield = yield
	interval := k.w.interval()
	for alive := true; alive; {
		began := k.w.now
		k.deadline = began + 2*interval
		_ = k.fleet.Sync(context.Background(), k.w.clock(), k) // counted in Stats
		k.synced = true
		wait := interval + time.Duration(k.w.rand.Int64N(int64(interval/10))) - interval/20
		alive = k.sleep(began+min(wait, interval/4)) && k.pause(began+wait)
	}
}

// pause sleeps until a time, or until demand is urgent.
func (k *task) pause(until time.Duration) bool {
	if k.isUrgent() {
		return true
	}
	k.urgent = true
	alive := k.sleep(until)
	k.urgent = false
	return alive
}

func (k *task) isUrgent() bool {
	select {
	case <-k.fleet.Urgent():
		return true
	default:
		return false
	}
}

// sleep returns false if the simulation has ended.
func (k *task) sleep(until time.Duration) bool { return k.yield(max(until, k.w.now)) }

var errGone = errors.New("the board does not answer")

// travel takes a message to the board or back. It fails at the deadline if the message is lost or late.
func (k *task) travel() error {
	if at := k.w.now + k.w.latency(); !k.isLost() && at <= k.deadline {
		k.sleep(at)
		return nil
	}
	k.sleep(k.deadline)
	return errGone
}

// isLost reports whether a message does not arrive.
func (k *task) isLost() bool {
	return k.cut || k.w.boards[k.zone] == nil || k.w.rand.Float64() < k.w.Loss
}

// Sync implements [fleet.Board].
func (k *task) Sync(ctx context.Context, s fleet.Said) (fleet.Heard, error) {
	c := &k.w.counts
	c.reports += float64(len(s.Report))
	c.syncs++
	if err := k.travel(); err != nil {
		return fleet.Heard{}, err
	}
	b := k.w.boards[k.zone]
	if b == nil {
		return fleet.Heard{}, errGone
	}
	began := k.clock()
	heard, err := b.Sync(ctx, s)
	k.boarded += k.clock() - began
	if err == nil {
		err = k.travel()
	}
	c.levels += float64(len(heard.Levels))
	for _, r := range heard.Reports {
		c.collected += float64(len(r.Report))
	}
	return heard, err
}

// Publish implements [fleet.Board]. The publication of a slow leader arrives late, whether or not the
// leader still waits for an answer.
func (k *task) Publish(ctx context.Context, p fleet.Publication) error {
	at := k.w.now + k.w.latency() + k.w.Slow
	if k.isLost() {
		k.sleep(k.deadline)
		return errGone
	}
	if at > k.deadline {
		k.w.late = append(k.w.late, publication{at, k.zone, p})
		k.sleep(k.deadline)
		return errGone
	}
	k.sleep(at)
	b := k.w.boards[k.zone]
	if b == nil {
		return errGone
	}
	if err := b.Publish(ctx, p); err != nil {
		k.w.counts.fenced++
		return err
	}
	return k.travel()
}

// Leave implements [fleet.Board].
func (k *task) Leave(ctx context.Context, name string) error {
	return k.w.boards[k.zone].Leave(ctx, name)
}
