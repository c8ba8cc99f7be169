package main

import (
	"container/heap"
	"context"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/seed90641741/spillway/quota/fleet"
)

const (
	ms     = time.Millisecond
	tick   = 10 * ms // interval at which calls arrive
	window = 100 * ms
)

// epoch is the wall clock at the begin.
var epoch = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

// A world is a service of many tasks, its boards and its calls, in virtual time. One goroutine runs
// it, so that the same seed gives the same figures on every machine.
type world struct {
	*scenario

	rand    *rand.Rand
	now     time.Duration
	queue   wakeUps
	serial  uint64
	tasks   []*task
	boards  []*fleet.Memory // by zone; nil while a board is gone
	late    []publication   // on their way
	names   []string        // of customers but the main one
	offered []float64       // calls of the main customer, by zone
	counts  counts
	err     error // of a change of limits
}

// A publication is levels of a slow leader, and when they reach the board.
type publication struct {
	at   time.Duration
	zone int
	fleet.Publication
}

// newWorld starts the tasks of a scenario.
func newWorld(s *scenario) (*world, error) {
	w := &world{scenario: s, rand: rand.New(rand.NewPCG(s.Seed, uint64(s.Tasks)))}
	for range s.zones() {
		w.boards = append(w.boards, fleet.NewMemory(w.clock))
	}
	w.offered = make([]float64, s.zones())
	for i := range s.Customers {
		w.names = append(w.names, "customer-"+strconv.Itoa(i))
	}
	for i := range s.Tasks {
		k, err := newTask(w, i)
		if err != nil {
			return nil, err
		}
		w.tasks = append(w.tasks, k)
		w.wake(k, time.Duration(w.rand.Int64N(int64(s.interval()))))
	}
	return w, nil
}

// clock is the time of the boards, and of tasks whose clocks are right.
func (w *world) clock() time.Time { return epoch.Add(w.now) }

// run lets time pass until the end of the scenario.
func (w *world) run() {
	defer w.stop()
	for at := time.Duration(0); at < w.End; at += tick {
		for len(w.queue) > 0 && w.queue[0].at <= at {
			next := heap.Pop(&w.queue).(wakeUp) //nolint:forcetypeassert // nothing else is pushed
			if next.serial == next.task.wakes {
				w.now = next.at
				next.task.resume()
			}
		}
		w.now = at
		w.deliver()
		if w.Customers > 0 && at == warmUp {
			w.counts = counts{}
		}
		if w.Events != nil {
			w.Events(w)
		}
		w.calls()
	}
}

// deliver brings late publications to the boards.
func (w *world) deliver() {
	var later []publication
	for _, p := range w.late {
		if p.at > w.now {
			later = append(later, p)
			continue
		}
		if b := w.boards[p.zone]; b != nil && b.Publish(context.Background(), p.Publication) != nil {
			w.counts.fenced++
		}
	}
	w.late = later
}

// latency is the time that a message takes.
func (w *world) latency() time.Duration {
	return w.Latency + time.Duration(w.rand.ExpFloat64()*float64(w.Latency)/4)
}

// stop ends the coroutines.
func (w *world) stop() {
	for _, k := range w.tasks {
		k.stop()
	}
}

// wake resumes a task at a time, in place of the time that was set before.
func (w *world) wake(k *task, at time.Duration) {
	w.serial++
	k.wakes = w.serial
	heap.Push(&w.queue, wakeUp{at, w.serial, k})
}

// poisson returns how many independent calls come when l are expected.
func (w *world) poisson(l float64) (n int) {
	if l <= 0 {
		return 0
	}
	if l > 30 {
		return int(max(0, math.Round(l+math.Sqrt(l)*w.rand.NormFloat64())))
	}
	for p := w.rand.Float64(); p > math.Exp(-l); n++ {
		p *= w.rand.Float64()
	}
	return n
}

// wakeUps is a heap of the times at which tasks continue.
type wakeUps []wakeUp

type wakeUp struct {
	at     time.Duration
	serial uint64
	task   *task
}

func (q wakeUps) Len() int      { return len(q) }
func (q wakeUps) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q wakeUps) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].serial < q[j].serial
}
func (q *wakeUps) Push(x any) { *q = append(*q, x.(wakeUp)) } //nolint:forcetypeassert // nothing else is pushed
func (q *wakeUps) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	*q = (*q)[:last]
	return x
}
