package turns

import (
	"container/heap"
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/precedence"
)

// A queue holds requests that wait for a slot. When it is full, it rejects the lowest request, by its task,
// of the customer with the most requests in the lowest class. It is safe for concurrent use;
// the zero queue has no slots.
type queue struct {
	mu       sync.Mutex
	limits   Limits
	full     *spillway.RejectedError // for want of room, under these limits
	late     *spillway.RejectedError // for a wait of MaxWait
	busy     int
	waiting  int
	classes  [spillway.Criticalities]customers
	rejected uint64
	expired  uint64
	turns    uint64        // after a wait
	waited   time.Duration // for them
}

// customers are the customers of one class that have waiting requests.
type customers struct {
	lines  map[string]*line
	ring   list.List // of lines, in the order of their turns; the first is next
	greedy greed     // the same lines
	latest uint64    // of their orders
}

// A line has the waiting requests of one customer.
type line struct {
	customer string
	waiters  waiters
	place    *list.Element // in the ring
	order    uint64        // of its place: those that come later in the ring have a greater one
	index    int           // in greedy
}

// turn is one request that waits.
type turn struct {
	class  int
	order  precedence.Order
	number uint64 // of its arrival in the line
	line   *line
	place  *list.Element // in the line
	index  int           // in the heap of the line
	began  time.Time
	done   chan error // receives one value when it is let go; nil: it may run
}

// enter waits for a slot for a request that has waited before. If it returns nil, leave must
// be called.
func (q *queue) enter(ctx context.Context, r Request, waited time.Duration) error {
	t, most, err := q.join(r.Criticality.Index(), r.Customer, precedence.Of(r.Progress, r.Level))
	if t == nil || err != nil {
		return err
	}
	return q.wait(ctx, t, most-waited)
}

// join returns the turn to wait for and the maximum wait, or nil if a slot is free.
func (q *queue) join(class int, customer string, order precedence.Order) (t *turn, most time.Duration, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.busy < q.limits.Places && q.waiting == 0 {
		q.busy++
		return nil, 0, nil
	}
	if !q.makePlace(class, customer, order) {
		q.rejected++
		return nil, 0, q.full
	}
	return q.add(class, customer, order), q.limits.MaxWait, nil
}

func (q *queue) wait(ctx context.Context, t *turn, most time.Duration) error {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case err := <-t.done:
		return err
	case <-timer.C:
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if t.line == nil { // let go in the meantime
		err := <-t.done
		if err == nil && ctx.Err() != nil {
			q.vacate()
			err = ctx.Err()
		}
		return err
	}
	q.remove(t)
	if err := ctx.Err(); err != nil {
		return err
	}
	q.expired++
	return q.late
}

func (q *queue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.vacate()
}

// vacate is leave with the lock held.
func (q *queue) vacate() {
	q.busy--
	q.fill()
}

func (q *queue) fill() {
	for q.busy < q.limits.Places && q.waiting > 0 {
		t := q.first()
		q.busy++
		q.turns++
		q.waited += time.Since(t.began)
		q.release(t, nil)
	}
}

// first returns the turn that gets the next slot, and advances to the next customer.
func (q *queue) first() *turn {
	for class := len(q.classes) - 1; class >= 0; class-- {
		c := &q.classes[class]
		next := c.ring.Front()
		if next == nil {
			continue
		}
		l := next.Value.(*line)
		c.ring.MoveToBack(next)
		c.latest++
		l.order = c.latest
		heap.Fix(&c.greedy, l.index)
		return l.waiters.first()
	}
	return nil
}

// makePlace reports whether one more request of a class and customer may wait. It may reject
// another waiting request for it. A customer who would have as many as any other gets no place of others.
func (q *queue) makePlace(class int, customer string, order precedence.Order) bool {
	if q.waiting < q.limits.Waiting {
		return true
	}
	for lowest := range class + 1 {
		lines := q.classes[lowest].greedy
		if len(lines) == 0 {
			continue
		}
		from := lines[0]
		if own := q.classes[class].lines[customer]; lowest == class && own.len()+1 >= from.len() {
			if own == nil || own.waiters.lowest().order >= order {
				return false
			}
			from = own
		}
		q.rejected++
		q.release(from.waiters.lowest(), q.full)
		return true
	}
	return false
}

// len returns how many requests wait in a line. A nil line is one of a customer with none.
func (l *line) len() int {
	if l == nil {
		return 0
	}
	return len(l.waiters.last)
}

// line returns the line of a customer. A new customer is added at the end of the ring.
func (t *customers) line(customer string) *line {
	if l := t.lines[customer]; l != nil {
		return l
	}
	t.latest++
	l := &line{customer: customer, order: t.latest}
	if t.lines == nil {
		t.lines = make(map[string]*line)
	}
	t.lines[customer] = l
	l.place = t.ring.PushBack(l)
	heap.Push(&t.greedy, l)
	return l
}

func (q *queue) add(class int, customer string, order precedence.Order) *turn {
	c := &q.classes[class]
	l := c.line(customer)
	t := &turn{class: class, order: order, line: l, began: time.Now(), done: make(chan error, 1)}
	l.waiters.add(t)
	heap.Fix(&c.greedy, l.index)
	q.waiting++
	return t
}

func (q *queue) release(t *turn, err error) {
	q.remove(t)
	t.done <- err
}

func (q *queue) remove(t *turn) {
	c, l := &q.classes[t.class], t.line
	t.line = nil
	q.waiting--
	l.waiters.remove(t)
	if l.len() > 0 {
		heap.Fix(&c.greedy, l.index)
		return
	}
	delete(c.lines, l.customer)
	c.ring.Remove(l.place)
	heap.Remove(&c.greedy, l.index)
}

// greed is a [heap.Interface] of lines. The line with the most requests is first; of several,
// the one whose turn is first.
type greed []*line

func (g greed) Len() int { return len(g) }

func (g greed) Less(i, j int) bool {
	a, b := g[i].len(), g[j].len()
	return a > b || a == b && g[i].order < g[j].order
}

func (g greed) Swap(i, j int) {
	g[i], g[j] = g[j], g[i]
	g[i].index, g[j].index = i, j
}

func (g *greed) Push(x any) {
	l := x.(*line)
	l.index = len(*g)
	*g = append(*g, l)
}

func (g *greed) Pop() any {
	last := len(*g) - 1
	l := (*g)[last]
	(*g)[last] = nil
	*g = (*g)[:last]
	return l
}

func (q *queue) update(l Limits) {
	q.mu.Lock()
	defer q.mu.Unlock()
	wait, waiting := l.MaxWait.Seconds()*1000, float64(l.Waiting)
	q.limits = l
	q.full = &spillway.RejectedError{
		Policy: "batch", Reason: spillway.ReasonQueueFull, Level: waiting, Limit: waiting, Unit: "requests in the queue", Advice: "the queue is full",
	}
	q.late = &spillway.RejectedError{
		Policy: "batch", Reason: spillway.ReasonMaxWait, Level: wait, Limit: wait, Unit: "ms waited", Advice: "the turn did not come in time",
	}
	q.fill()
}

func (q *queue) stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	return Stats{q.busy, q.limits.Places, q.waiting, q.rejected, q.expired, q.turns, q.waited}
}
