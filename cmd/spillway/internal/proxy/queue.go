package proxy

import (
	"context"
	"sync"
	"time"

	"github.com/seed90641741/spillway"
)

// queueLimits are those of a [queue].
type queueLimits struct {
	places  int // requests under way at once
	most    int // that wait
	maxWait time.Duration
}

// A queue has requests wait for their turn. The highest class is first, and in it the
// customers take turns, each with its oldest request. When the queue is full, whoever
// comes last waits only at the cost of a lower class, or of a customer of its own
// class that has more waiting than itself: the newest request of the greediest
// customer of the lowest class makes place. A queue is safe for concurrent use.
type queue struct {
	mu      sync.Mutex
	limits  queueLimits
	busy    int
	waiting int
	classes [spillway.Criticalities]turns
	refused uint64
	expired uint64
	turns   uint64        // after a wait
	waited  time.Duration // for them
}

func newQueue(l queueLimits) *queue { return &queue{limits: l} }

// turns are the customers of one class that have something waiting.
type turns struct {
	lines map[string]*line
	ring  []*line // in the order of their turns; the first is next
}

// line is what one customer has waiting, the oldest first.
type line struct {
	customer string
	waiters  []*turn
	last     bool // it is out of the ring, as its last request has its turn
}

// turn is one request that waits.
type turn struct {
	class int
	line  *line
	done  chan error // receives one value when it is let go; nil: it may run
}

var (
	errFull = &spillway.RejectedError{Policy: "batch", Advice: "the queue is full"}
	errLate = &spillway.RejectedError{Policy: "batch", Advice: "the turn did not come in time"}
)

// enter waits for a place. If it returns nil, leave must be called.
func (q *queue) enter(ctx context.Context, c spillway.Criticality, customer string) error {
	q.mu.Lock()
	if q.busy < q.limits.places && q.waiting == 0 {
		q.busy++
		q.mu.Unlock()
		return nil
	}
	if !q.makePlace(c.Index(), customer) {
		q.refused++
		q.mu.Unlock()
		return errFull
	}
	t := q.add(c.Index(), customer)
	most := q.limits.maxWait
	q.mu.Unlock()
	return q.wait(ctx, t, most)
}

func (q *queue) wait(ctx context.Context, t *turn, most time.Duration) error {
	began := time.Now()
	timer := time.NewTimer(most)
	defer timer.Stop()
	var err error
	select {
	case err := <-t.done:
		q.took(err, time.Since(began))
		return err
	case <-timer.C:
		err = errLate
	case <-ctx.Done():
		err = ctx.Err()
	}
	q.mu.Lock()
	if t.line == nil { // let go in the meantime
		q.mu.Unlock()
		if told := <-t.done; told != nil {
			return told
		}
		if ctx.Err() == nil {
			return nil
		}
		q.leave()
		return err
	}
	defer q.mu.Unlock()
	q.remove(t)
	if err == errLate { //nolint:errorlint // it is this very one
		q.expired++
	}
	return err
}

// took counts a turn that was waited for.
func (q *queue) took(err error, wait time.Duration) {
	if err != nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.turns++
	q.waited += wait
}

// leave gives a place back.
func (q *queue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy--
	q.fill()
}

// fill gives free places to those who wait.
func (q *queue) fill() {
	for q.busy < q.limits.places && q.waiting > 0 {
		t := q.first()
		q.busy++
		q.release(t, nil)
	}
}

// first returns whose turn it is, and makes the next customer next.
func (q *queue) first() *turn {
	for class := len(q.classes) - 1; class >= 0; class-- {
		c := &q.classes[class]
		if len(c.ring) == 0 {
			continue
		}
		l := c.ring[0]
		if c.ring = c.ring[1:]; len(l.waiters) > 1 {
			c.ring = append(c.ring, l)
		} else {
			l.last = true
		}
		return l.waiters[0]
	}
	return nil
}

// makePlace reports whether one more of a class and customer may wait, for which
// another one may have to go.
func (q *queue) makePlace(class int, customer string) bool {
	if q.waiting < q.limits.most {
		return true
	}
	for lowest := range class + 1 {
		greediest := q.classes[lowest].greediest()
		if greediest == nil {
			continue
		}
		if lowest == class && q.classes[class].length(customer)+1 >= len(greediest.waiters) {
			return false
		}
		q.refused++
		q.release(greediest.waiters[len(greediest.waiters)-1], errFull)
		return true
	}
	return false
}

func (t *turns) greediest() (most *line) {
	for _, l := range t.ring {
		if most == nil || len(l.waiters) > len(most.waiters) {
			most = l
		}
	}
	return most
}

func (t *turns) length(customer string) int {
	if l := t.lines[customer]; l != nil {
		return len(l.waiters)
	}
	return 0
}

func (q *queue) add(class int, customer string) *turn {
	c := &q.classes[class]
	l := c.lines[customer]
	if l == nil {
		l = &line{customer: customer}
		if c.lines == nil {
			c.lines = make(map[string]*line)
		}
		c.lines[customer] = l
		c.ring = append(c.ring, l)
	}
	t := &turn{class: class, line: l, done: make(chan error, 1)}
	l.waiters = append(l.waiters, t)
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
	l.waiters = without(l.waiters, t)
	if len(l.waiters) == 0 {
		delete(c.lines, l.customer)
		if !l.last {
			c.ring = without(c.ring, l)
		}
	}
}

// without returns list without its element x, in the same order.
func without[T comparable](list []T, x T) []T {
	if len(list) > 0 && list[0] == x {
		var none T
		list[0] = none
		return list[1:]
	}
	for i := range list {
		if list[i] == x {
			return append(list[:i], list[i+1:]...)
		}
	}
	return list
}

// update changes the limits. Those who wait or run are not refused by it.
func (q *queue) update(l queueLimits) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.limits = l
	q.fill()
}

// QueueStats says how the queue of a batch cluster stands.
type QueueStats struct {
	Busy, Places int // requests under way
	Waiting      int
	RefusedTotal uint64        // for want of room
	ExpiredTotal uint64        // whose turn did not come in time
	TurnsTotal   uint64        // that came after a wait
	Waited       time.Duration // for all of these
}

func (q *queue) stats() QueueStats {
	q.mu.Lock()
	defer q.mu.Unlock()
	return QueueStats{q.busy, q.limits.places, q.waiting, q.refused, q.expired, q.turns, q.waited}
}
