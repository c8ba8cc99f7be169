package turns

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/precedence"
)

// A plainQueue is a simple model of a [queue]: one list of the waiting requests of each class,
// which each step scans.
type plainQueue struct {
	places, most, busy int
	waiting            [spillway.Criticalities][]plainTurn // in the order in which they came
	ring               [spillway.Criticalities][]string    // of customers
}

type plainTurn struct {
	id, customer string
	order        precedence.Order
}

// lowest returns the turn of a customer that is rejected first: of the lowest order the newest.
func (q *plainQueue) lowest(class int, customer string) (lowest plainTurn) {
	for _, t := range q.waiting[class] {
		if t.customer == customer && (lowest.id == "" || t.order <= lowest.order) {
			lowest = t
		}
	}
	return lowest
}

// next returns the turn of a customer that runs next: of the most progress the oldest.
func (q *plainQueue) next(class int, customer string) (next plainTurn) {
	for _, t := range q.waiting[class] {
		if t.customer == customer && (next.id == "" || t.order.Step() > next.order.Step()) {
			next = t
		}
	}
	return next
}

func (q *plainQueue) all() (n int) {
	for class := range q.waiting {
		n += len(q.waiting[class])
	}
	return n
}

func (q *plainQueue) count(class int, customer string) (n int) {
	for _, t := range q.waiting[class] {
		if t.customer == customer {
			n++
		}
	}
	return n
}

// greediest returns the customer with the most waiting requests; of several, the next in turn.
func (q *plainQueue) greediest(class int) (most string) {
	for i, c := range q.ring[class] {
		if i == 0 || q.count(class, c) > q.count(class, most) {
			most = c
		}
	}
	return most
}

// remove removes a turn, and its customer if it was the last.
func (q *plainQueue) remove(class int, id string) {
	i := slices.IndexFunc(q.waiting[class], func(t plainTurn) bool { return t.id == id })
	customer := q.waiting[class][i].customer
	q.waiting[class] = slices.Delete(q.waiting[class], i, i+1)
	if q.count(class, customer) == 0 {
		q.ring[class] = slices.DeleteFunc(q.ring[class], func(c string) bool { return c == customer })
	}
}

// enter returns the outcomes, with the name of each turn.
func (q *plainQueue) enter(class int, id, customer string, order precedence.Order) (became []string) {
	if q.busy < q.places && q.all() == 0 {
		q.busy++
		return []string{id + " runs"}
	}
	if q.all() >= q.most {
		lowest := slices.IndexFunc(q.ring[:class+1], func(ring []string) bool { return len(ring) > 0 })
		if lowest < 0 {
			return []string{id + " rejected"}
		}
		from := q.greediest(lowest)
		if lowest == class && q.count(class, customer)+1 >= q.count(class, from) {
			from = customer
			if own := q.lowest(class, customer); own.id == "" || own.order >= order {
				return []string{id + " rejected"}
			}
		}
		last := q.lowest(lowest, from).id
		q.remove(lowest, last)
		became = append(became, last+" rejected")
	}
	if q.count(class, customer) == 0 {
		q.ring[class] = append(q.ring[class], customer)
	}
	q.waiting[class] = append(q.waiting[class], plainTurn{id, customer, order})
	return became
}

func (q *plainQueue) leave() (became []string) {
	q.busy--
	for q.busy < q.places && q.all() > 0 {
		class := len(q.ring) - 1
		for len(q.ring[class]) == 0 {
			class--
		}
		next := q.ring[class][0]
		q.ring[class] = append(q.ring[class][1:], next)
		id := q.next(class, next).id
		q.remove(class, id)
		q.busy++
		became = append(became, id+" runs")
	}
	return became
}

func newQueue(l Limits) *queue {
	q := new(queue)
	q.update(l)
	return q
}

// waits are the turns of a [queue] that have not ended, by name.
type waits map[string]*turn

// ended returns the outcomes of turns that ended since the last call, sorted by name.
func (w waits) ended() (became []string) {
	for id, t := range w {
		select {
		case err := <-t.done:
			delete(w, id)
			if err != nil {
				became = append(became, id+" rejected")
			} else {
				became = append(became, id+" runs")
			}
		default:
		}
	}
	slices.Sort(became)
	return became
}

// TestQueueModel runs random clients through a queue and its model: both must admit and reject
// the same ones.
func TestQueueModel(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		places, most, customers := 1+r.IntN(3), r.IntN(30), 1+r.IntN(12)
		q := newQueue(Limits{places, most, time.Minute})
		model, waiting := &plainQueue{places: places, most: most}, make(waits)
		for step := range 1500 {
			var want, got []string
			switch n := r.IntN(10); {
			case n < 6:
				id, class, customer := fmt.Sprint(step), r.IntN(spillway.Criticalities), fmt.Sprint(r.IntN(customers))
				order := precedence.Of(spillway.Progress(r.IntN(6)), spillway.Level(r.IntN(5)))
				want = model.enter(class, id, customer, order)
				x, _, err := q.join(class, customer, order)
				switch {
				case err != nil:
					got = append(got, id+" rejected")
				case x == nil:
					got = append(got, id+" runs")
				default:
					waiting[id] = x
				}
			case n < 9 && model.busy > 0:
				want = model.leave()
				q.leave()
			case len(waiting) > 0: // somebody leaves
				ids := make([]string, 0, len(waiting))
				for id := range waiting {
					ids = append(ids, id)
				}
				slices.Sort(ids)
				id := ids[r.IntN(len(ids))]
				model.remove(waiting[id].class, id)
				q.remove(waiting[id])
				delete(waiting, id)
			}
			got = append(got, waiting.ended()...)
			slices.Sort(want)
			if !slices.Equal(got, want) || q.waiting != model.all() || q.busy != model.busy {
				t.Fatalf("seed %d, step %d: %v, %d wait, %d run; want %v, %d, %d", seed, step, got, q.waiting, q.busy, want, model.all(), model.busy)
			}
		}
	}
}

// BenchmarkQueueFull adds requests to a queue that is full, with requests from a given number
// of customers: from one more customer, and of a higher class.
func BenchmarkQueueFull(b *testing.B) {
	for _, customers := range []int{1, 100, 10_000} {
		q := newQueue(Limits{Waiting: 10_000, MaxWait: time.Minute})
		low, high := spillway.Critical.Index(), spillway.CriticalPlus.Index()
		for i := range 10_000 {
			q.add(low, fmt.Sprint(i%customers), 0)
		}
		b.Run(fmt.Sprintf("rejected/customers=%d", customers), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := q.join(low, "0", 0); err == nil {
					b.Fatal("there is room")
				}
			}
		})
		b.Run(fmt.Sprintf("replaced/customers=%d", customers), func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				t, _, err := q.join(high, "", 0)
				if err != nil {
					b.Fatal(err)
				}
				q.remove(t)
				q.add(low, fmt.Sprint(i%customers), 0) // about as it was
				i++
			}
		})
	}
}
