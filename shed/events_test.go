package shed_test

import "time"

// An event is what a server does at a time. Nearly all the work of a scenario is with events, so
// they are small and their times are numbers.
type event struct {
	at    time.Duration // since the start of the server
	seq   int
	do    func()
	frees bool // a goroutine ends its computation, and frees its processor
}

func (e *event) before(f *event) bool { return e.at < f.at || e.at == f.at && e.seq < f.seq }

// events is a heap. Package heap would allocate each event twice, and call a method for each step.
type events []event

func (e *events) push(x event) {
	h := append(*e, x)
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !x.before(&h[parent]) {
			break
		}
		h[i], i = h[parent], parent
	}
	h[i] = x
	*e = h
}

func (e *events) pop() event {
	h := *e
	first, x, n := h[0], h[len(h)-1], len(h)-1
	h[n] = event{}
	h = h[:n]
	*e = h
	for i := 0; n > 0; {
		child := 2*i + 1
		if child+1 < n && h[child+1].before(&h[child]) {
			child++
		}
		if child >= n || !h[child].before(&x) {
			h[i] = x
			break
		}
		h[i], i = h[child], child
	}
	return first
}

// A fifo is a queue that uses its memory again.
type fifo[T any] struct {
	all  []T
	head int
}

func (f *fifo[T]) len() int { return len(f.all) - f.head }
func (f *fifo[T]) push(x T) { f.all = append(f.all, x) }

func (f *fifo[T]) pop() T {
	x := f.all[f.head]
	if f.head++; 2*f.head >= len(f.all) {
		n := copy(f.all, f.all[f.head:])
		clear(f.all[n:])
		f.all, f.head = f.all[:n], 0
	}
	return x
}
