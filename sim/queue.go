package sim

import "github.com/seed90641741/spillway"

// A queue is a ring that grows. The zero queue is empty.
type queue[T any] struct {
	ring  []T
	first int
	n     int
}

func (q *queue[T]) at(i int) *T { return &q.ring[(q.first+i)&(len(q.ring)-1)] }

func (q *queue[T]) push(v T) {
	if q.n == len(q.ring) {
		ring := make([]T, max(8, 2*q.n))
		for i := range q.n {
			ring[i] = *q.at(i)
		}
		q.ring, q.first = ring, 0
	}
	*q.at(q.n) = v
	q.n++
}

// oldest takes out what was pushed first. There must be something.
func (q *queue[T]) oldest() (v T) {
	v, *q.at(0) = *q.at(0), v
	q.first = (q.first + 1) & (len(q.ring) - 1)
	q.n--
	return v
}

// newest takes out what was pushed last. There must be something.
func (q *queue[T]) newest() (v T) {
	q.n--
	v, *q.at(q.n) = *q.at(q.n), v
	return v
}

// A runQueue is the requests that wait for a processor, in some order.
type runQueue struct {
	discipline Discipline
	classes    [spillway.Criticalities]queue[*request]
	n          int
}

func (q *runQueue) push(r *request) {
	class := 0
	if q.discipline == Priority {
		class = r.call.Criticality.Index()
	}
	q.classes[class].push(r)
	q.n++
}

func (q *runQueue) pop() *request {
	q.n--
	if q.discipline == LIFO {
		return q.classes[0].newest()
	}
	class := len(q.classes) - 1
	for q.classes[class].n == 0 {
		class--
	}
	return q.classes[class].oldest()
}
