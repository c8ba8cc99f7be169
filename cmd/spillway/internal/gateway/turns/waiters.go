package turns

import (
	"container/heap"
	"container/list"

	"github.com/seed90641741/spillway/internal/precedence"
)

// waiters are the waiting requests of one customer. They run by the progress of their tasks and their time of arrival, and are
// rejected from the lowest order up, and of several in the same order the newest first.
type waiters struct {
	steps [precedence.Steps]list.List // of turns, the oldest first
	last  byOrder                     // the same turns
	came  uint64                      // how many did
}

func (w *waiters) add(t *turn) {
	w.came++
	t.number = w.came
	t.place = w.steps[t.order.Step()].PushBack(t)
	heap.Push(&w.last, t)
}

func (w *waiters) remove(t *turn) {
	w.steps[t.order.Step()].Remove(t.place)
	heap.Remove(&w.last, t.index)
}

// first returns the turn that runs next, or nil.
func (w *waiters) first() *turn {
	for step := len(w.steps) - 1; step >= 0; step-- {
		if next := w.steps[step].Front(); next != nil {
			return next.Value.(*turn)
		}
	}
	return nil
}

// lowest returns the turn that is rejected first. There must be one.
func (w *waiters) lowest() *turn { return w.last[0] }

// byOrder is a [heap.Interface] of turns. The one that is rejected first is first.
type byOrder []*turn

func (h byOrder) Len() int { return len(h) }

func (h byOrder) Less(i, j int) bool {
	return h[i].order < h[j].order || h[i].order == h[j].order && h[i].number > h[j].number
}

func (h byOrder) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *byOrder) Push(x any) {
	t := x.(*turn)
	t.index = len(*h)
	*h = append(*h, t)
}

func (h *byOrder) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return t
}
